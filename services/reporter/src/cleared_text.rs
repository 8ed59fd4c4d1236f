//! Text cleared for publication. Only the credential scan constructs it, and every call that writes text outside
//! requires it.

use domain::{PolicyViolation, SecretPlace as Place};

use crate::{effect_error::EffectError, scan};

/// Text without credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClearedText(String);

impl ClearedText {
    /// Clears text of the model. A credential is refused, so that the model writes the text without it.
    ///
    /// # Errors
    /// The refusal, with the kind and place of the credential.
    pub(crate) fn by_the_model(text: String, place: Place) -> Result<Self, EffectError> {
        match scan::find_rendered(&text) {
            None => Ok(Self(text)),
            Some(kind) => {
                let kind = kind.to_owned();
                Err(EffectError::Refused(
                    PolicyViolation::Secret { kind, place }.into(),
                ))
            }
        }
    }

    /// Clears text that must reach people. Credentials in it are redacted.
    pub(crate) fn without_credentials(text: &str) -> Self {
        Self(scan::redact_rendered(text).into_owned())
    }

    /// Returns the text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn model_credential_is_refused_notice_is_redacted() {
        let token = format!("ghp_{}", "a1B2c3D4e5".repeat(4));
        let refused = ClearedText::by_the_model(format!("see {token}"), Place::Body).unwrap_err();
        let words = refused.to_string();
        assert!(
            words.contains("GitHub token") && words.contains("the body of the pull request"),
            "{words}"
        );
        assert!(!words.contains(&token), "{words}");
        let cleaned = ClearedText::without_credentials(&format!("see {token}"));
        assert_eq!(cleaned.as_str(), "see [GitHub token removed]");
    }

    // Client calls that write text of others.
    const WRITING: [&str; 12] = [
        ".comment(",
        ".comment_for(",
        ".update_comment(",
        ".create_pull_request(",
        ".remote_link(",
        ".add_labels(",
        ".reply(",
        ".create_check_run(",
        ".update_check_run(",
        ".create_issue(",
        ".comment_on_discussion(",
        ".update_discussion_comment(",
    ];

    fn assert_guarded(folder: &Path, found: &mut usize) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                assert_guarded(&path, found);
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            let is_test = path.to_string_lossy().contains("tests") || path.ends_with("cleared_text.rs");
            // Tests at the end of a file create their tickets at the stand-ins.
            let (product, _) = source
                .split_once("\n#[cfg(test)]\nmod tests {")
                .unwrap_or((&source, ""));
            let writes = WRITING.iter().filter(|call| product.contains(**call)).count();
            if is_test || writes == 0 {
                continue;
            }
            *found += writes;
            assert!(
                path.ends_with("effects/text_writes.rs"),
                "{} writes text past the scan",
                path.display()
            );
        }
    }

    #[test]
    fn text_leaves_in_one_place() {
        let mut found = 0;
        assert_guarded(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
        assert_eq!(found, WRITING.len());
    }
}

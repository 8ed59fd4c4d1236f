//! Texts of the rules files of a folder.

use std::path::Path;

use anyhow::Context;
use bootstrap::rules::RulesBook;

/// Texts of the rules files of a folder by name; empty for a missing folder.
pub(super) fn read_rules_files(folder: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let place = || format!("cannot read the rules in {}", folder.display());
    if folder.try_exists().with_context(place)? {
        RulesBook::read_texts(folder).with_context(place)
    } else {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_files_are_read_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.yaml", "a.yml", "notes.md"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let files = read_rules_files(folder.path()).unwrap();
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a.yml", "b.yaml"]);
        assert!(
            read_rules_files(&folder.path().join("missing"))
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn unreadable_file_is_named_with_cause() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.yaml"), b"repo: \xff").unwrap();
        let error = read_rules_files(folder.path()).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.starts_with("cannot read the rules in "), "{text}");
        assert!(text.contains(": a.yaml is not UTF-8: invalid utf-8"), "{text}");
    }
}

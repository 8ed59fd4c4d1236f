//! Glob patterns as models write them.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::Call;
use crate::workspace::Kind;

/// Patterns, one of which a path must match.
#[derive(Debug)]
pub(super) struct Globs {
    set: GlobSet,
    is_plain: bool,
}

impl Globs {
    /// Patterns separated by commas. A pattern may begin with `./` or with the workspace's own path; without a slash it is
    /// looked for in every folder; the name of a folder stands for all that is in it.
    ///
    /// # Errors
    /// A text for the model.
    pub(super) fn new(call: &Call, patterns: &str) -> Result<Self, String> {
        let (mut set, mut is_plain) = (GlobSetBuilder::new(), true);
        for pattern in split(patterns) {
            is_plain &= !pattern.contains(['*', '?', '[', '{']);
            for pattern in meant(call, pattern) {
                let glob = GlobBuilder::new(&pattern).literal_separator(true).build();
                set.add(glob.map_err(|error| {
                    format!(
                        "{pattern:?} is not a glob pattern: {}. Try one such as **/*.py.",
                        error.kind()
                    )
                })?);
            }
        }
        let set = set
            .build()
            .map_err(|error| format!("The pattern is not usable: {}. Try a shorter one.", error.kind()))?;
        Ok(Self { set, is_plain })
    }

    /// Whether no pattern has a wildcard.
    pub(super) const fn is_plain(&self) -> bool {
        self.is_plain
    }

    pub(super) fn is_match(&self, path: &Path) -> bool {
        self.set.is_match(path)
    }
}

/// At commas outside of braces.
fn split(patterns: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let at_comma = move |c: char| {
        depth = match c {
            '{' => depth + 1,
            '}' => depth.saturating_sub(1),
            _ => depth,
        };
        c == ',' && depth == 0
    };
    patterns
        .split(at_comma)
        .map(str::trim)
        .filter(|pattern| !pattern.is_empty())
}

/// The patterns that one as it is written stands for.
fn meant(call: &Call, pattern: &str) -> Vec<String> {
    let root = call.workspace.root().path().to_string_lossy();
    let inside = pattern.strip_prefix(root.as_ref()).unwrap_or(pattern);
    let inside = inside.trim_start_matches('/');
    let inside = inside.strip_prefix("./").unwrap_or(inside);
    let name = inside.trim_end_matches('/');
    let is_folder = |path: &str| matches!(call.workspace.root().stat(Path::new(path)), Ok(Some(stat)) if stat.kind == Kind::Folder);
    if name.is_empty() || name == "." {
        return vec!["**".to_owned()];
    }
    if inside.ends_with('/') || is_folder(name) {
        return vec![format!("{name}/**")];
    }
    if name.contains('/') {
        vec![name.to_owned()]
    } else {
        vec![format!("**/{name}")]
    }
}

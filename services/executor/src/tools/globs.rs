//! Glob patterns in the forms that models write.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::ToolContext;
use crate::workspace::{FileKind, WorkspaceRoot};

/// Characters that have a meaning in a pattern.
const WILDCARDS: [char; 4] = ['*', '?', '[', '{'];

/// Set of patterns; a path matches if one of them does.
#[derive(Debug)]
pub(super) struct GlobPatterns {
    set: GlobSet,
    is_plain: bool,
}

impl GlobPatterns {
    /// Parses patterns separated by commas.
    ///
    /// A pattern may begin with `./` or the absolute path of the workspace. Without a slash it matches in
    /// every folder. The name of a folder matches all files in it.
    ///
    /// # Errors
    /// Returns a text for the model when a pattern is invalid.
    pub(super) fn new(call: &ToolContext, patterns: &str) -> Result<Self, String> {
        Self::parse(call, patterns, false)
    }

    /// Parses patterns that match in any case.
    ///
    /// # Errors
    /// Returns a text for the model when a pattern is invalid.
    pub(super) fn in_any_case(call: &ToolContext, patterns: &str) -> Result<Self, String> {
        Self::parse(call, patterns, true)
    }

    fn parse(call: &ToolContext, patterns: &str, ignores_case: bool) -> Result<Self, String> {
        let (mut set, mut is_plain) = (GlobSetBuilder::new(), true);
        for pattern in split_patterns(patterns) {
            is_plain &= !pattern.contains(WILDCARDS);
            for pattern in expand_pattern(call, pattern) {
                // `*` must not match across folders; `**` does.
                let glob = GlobBuilder::new(&pattern)
                    .literal_separator(true)
                    .case_insensitive(ignores_case)
                    .build();
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

    /// Returns true when no pattern has a wildcard.
    pub(super) const fn is_plain(&self) -> bool {
        self.is_plain
    }

    pub(super) fn is_match(&self, path: &Path) -> bool {
        self.set.is_match(path)
    }
}

/// Splits a list of patterns at commas outside of braces.
fn split_patterns(patterns: &str) -> impl Iterator<Item = &str> {
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

/// Expands a pattern as written into the patterns that it means.
fn expand_pattern(call: &ToolContext, pattern: &str) -> Vec<String> {
    let root = call.workspace.root().path().to_string_lossy();
    let inside = pattern.strip_prefix(root.as_ref()).unwrap_or(pattern);
    let inside = inside.trim_start_matches('/');
    let inside = inside.strip_prefix("./").unwrap_or(inside);
    let name = inside.trim_end_matches('/');
    let is_folder = |path: &str| matches!(call.workspace.root().stat(Path::new(path)), Ok(Some(stat)) if stat.kind == FileKind::Folder);
    if name.is_empty() || name == "." {
        return vec!["**".to_owned()];
    }
    let glob = escape_existing_parts(call.workspace.root(), name);
    if inside.ends_with('/') || is_folder(name) {
        return vec![format!("{glob}/**")];
    }
    if name.contains('/') {
        vec![glob]
    } else {
        vec![format!("**/{glob}")]
    }
}

/// Escapes the first parts of a pattern that name an existing path: frameworks use names such as `app/[id]`.
fn escape_existing_parts(root: &WorkspaceRoot, pattern: &str) -> String {
    if !pattern.contains(WILDCARDS) {
        return pattern.to_owned();
    }
    let (mut path, mut is_existing) = (PathBuf::new(), true);
    let parts = pattern.split('/').map(|part| {
        path.push(part);
        is_existing = is_existing && matches!(root.stat(&path), Ok(Some(_)));
        if is_existing {
            globset::escape(part)
        } else {
            part.to_owned()
        }
    });
    parts.collect::<Vec<_>>().join("/")
}

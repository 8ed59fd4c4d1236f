//! Paths of a worktree that cannot become part of a tree, with the reason.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::WorkspaceError;

/// Limit of named paths.
pub(super) const MAX_NAMED: usize = 20;
/// Reason for a file of a tool that an ignore rule names.
const IGNORED: &str =
    "an ignore rule names it; use another path or change .gitignore if it belongs to the change";

/// Files and folders that a scan of the worktree omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OmittedPaths {
    /// The first of them, each with the reason.
    named: Vec<String>,
    count: usize,
    /// The first paths that a tool wrote and an ignore rule names.
    ignored: Vec<String>,
}

impl OmittedPaths {
    /// Records an omitted path.
    pub(super) fn add(&mut self, path: &Path, why: &str) {
        self.count += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push(format!("{}: {why}", render_path(path)));
        }
    }

    /// Records a path that a tool wrote and an ignore rule names.
    pub(super) fn add_ignored(&mut self, path: &Path) {
        self.add(path, IGNORED);
        if self.ignored.len() < MAX_NAMED {
            self.ignored.push(render_path(path));
        }
    }

    /// Adds the paths of another scan after the own ones.
    pub(super) fn append(&mut self, other: Self) {
        self.count += other.count;
        let free = MAX_NAMED.saturating_sub(self.named.len());
        self.named.extend(other.named.into_iter().take(free));
        let free = MAX_NAMED.saturating_sub(self.ignored.len());
        self.ignored.extend(other.ignored.into_iter().take(free));
    }

    /// Returns the first omitted paths, each with the reason.
    pub(crate) fn named(&self) -> &[String] {
        &self.named
    }

    /// Returns the first paths that a tool wrote and an ignore rule names.
    pub(crate) fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// Renders a note for the model; empty if nothing was omitted.
    pub(super) fn render_note(&self) -> String {
        if self.count == 0 {
            return String::new();
        }
        let more = self.count - self.named.len();
        let more = if more > 0 {
            format!("\n  and {more} more")
        } else {
            String::new()
        };
        format!(
            "\n[{} path(s) are not part of any commit; what was committed of them before stays:\n  {}{more}]",
            self.count,
            self.named.join("\n  ")
        )
    }
}

/// Renders a path without control characters, at most 200 characters.
fn render_path(path: &Path) -> String {
    let path = path.to_string_lossy();
    let path: String = path.chars().filter(|c| !c.is_control()).take(200).collect();
    if path.is_empty() { ".".to_owned() } else { path }
}

/// Returns the reason why a file cannot be read; `None` if the file was deleted meanwhile.
///
/// # Errors
/// Returns an infrastructure failure that concerns more than this file. In that case the scan is not
/// reliable.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the other kinds have the text of the system"
)]
pub(super) fn explain_unreadable(error: &io::Error) -> Result<Option<String>, WorkspaceError> {
    match error.kind() {
        io::ErrorKind::NotFound => Ok(None),
        // A full disk or the limit of open files is not caused by this file.
        io::ErrorKind::StorageFull | io::ErrorKind::OutOfMemory => {
            Err(WorkspaceError::of_machine(error.to_string()))
        }
        io::ErrorKind::PermissionDenied => Ok(Some("permission denied (chmod helps)".to_owned())),
        io::ErrorKind::InvalidFilename => Ok(Some("its path is too long".to_owned())),
        _ => Ok(Some(error.to_string())),
    }
}

/// Returns a path that a walk could not enter, with the reason.
pub(super) fn explain_walk_error(error: &ignore::Error, root: &Path) -> Option<(PathBuf, String)> {
    let path = path_of(error).and_then(|path| path.strip_prefix(root).ok());
    let why = match error.io_error() {
        Some(error) => explain_unreadable(error).ok()??,
        None => error.to_string(),
    };
    Some((path.unwrap_or(Path::new("")).to_owned(), why))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the other errors have no path")]
fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        ignore::Error::Loop { child, .. } => Some(child),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_paths_beyond_limit_are_counted() {
        let mut omitted = OmittedPaths::default();
        assert_eq!(omitted.render_note(), "");
        for number in 0..25 {
            omitted.add(Path::new(&format!("a\u{1b}{number}")), "permission denied");
        }
        let note = omitted.render_note();
        assert!(
            note.contains("[25 path(s)") && note.contains("  a0: permission denied\n"),
            "{note}"
        );
        assert!(note.ends_with("and 5 more]"), "{note}");
    }
}

//! A change: the texts before and after, its hunks, and all paths.

use std::path::Path;

use domain::TreeId;
use git2::{Delta, DiffOptions, Oid};

use super::{
    Workspace, WorkspaceError,
    hunks::{MAX_HUNKS, TreeHunk, list_hunks},
    tracked_files::list_tracked_files,
};

/// Limit of compared files.
const MAX_FILES: usize = 2000;
/// Limit of a file's text in bytes; larger texts are not read.
const MAX_BYTES: usize = 1 << 20;

/// A changed file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedFile {
    pub(crate) path: String,
    /// Text before the change; `None` if the file is new.
    pub(crate) before: Option<String>,
    /// Text after the change; `None` if the file is removed.
    pub(crate) after: Option<String>,
}

/// All differences between the base commit and the workspace's files.
pub(crate) struct WorkspaceChange {
    pub(crate) tree: TreeId,
    pub(crate) files: Vec<ChangedFile>,
    pub(crate) hunks: Vec<TreeHunk>,
    /// All paths of the workspace.
    pub(crate) paths: Vec<String>,
    /// True when some files or hunks are missing because of a limit.
    pub(crate) is_truncated: bool,
}

impl WorkspaceChange {
    /// Compares the current files with the base. Blocks.
    pub(crate) fn read(workspace: &Workspace) -> Result<Self, WorkspaceError> {
        let repository = workspace.git.open()?;
        let git = repository.objects();
        let (base, head) = (workspace.git.base_tree(git)?, workspace.tree(git)?);
        let (before, after) = (git.find_tree(base)?, git.find_tree(head)?);
        let diff = git.diff_tree_to_tree(Some(&before), Some(&after), Some(&mut DiffOptions::new()))?;
        // A truncated change is reported as such, so that gates know that the inspection is incomplete.
        let mut is_truncated = diff.deltas().len() > MAX_FILES;
        let mut files = Vec::new();
        for delta in diff.deltas().take(MAX_FILES) {
            let path = delta.new_file().path().or_else(|| delta.old_file().path());
            let mut read = |id: Oid| {
                let text = read_text(git, id);
                is_truncated |= text.is_none();
                text.unwrap_or_default()
            };
            let before = (delta.status() != Delta::Added).then(|| read(delta.old_file().id()));
            let after = (delta.status() != Delta::Deleted).then(|| read(delta.new_file().id()));
            files.push(ChangedFile {
                path: path.unwrap_or(Path::new("")).to_string_lossy().into_owned(),
                before,
                after,
            });
        }
        let hunks = list_hunks(git, base, head)?;
        let paths = list_tracked_files(git, head)?;
        Ok(Self {
            tree: head
                .to_string()
                .parse()
                .map_err(|_| WorkspaceError::Trouble("git gave a strange tree id".to_owned()))?,
            files,
            // `list_hunks` stops at its limit, so further hunks may be missing.
            is_truncated: is_truncated || hunks.len() == MAX_HUNKS,
            hunks,
            paths: paths
                .keys()
                .map(|path| path.to_string_lossy().into_owned())
                .collect(),
        })
    }
}

/// Returns the text of a file: empty for a binary file, `None` for a text above the limit.
fn read_text(git: &git2::Repository, id: Oid) -> Option<String> {
    // The commit of a submodule is in another repository.
    let Ok(blob) = git.find_blob(id) else {
        return Some(String::new());
    };
    if blob.size() > MAX_BYTES {
        return blob.is_binary().then(String::new);
    }
    Some(if blob.is_binary() {
        String::new()
    } else {
        String::from_utf8_lossy(blob.content()).into_owned()
    })
}

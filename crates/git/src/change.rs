//! What a change consists of, as policy reads it.

use domain::CommitId;

use crate::{
    Error,
    elsewhere::{Attributes, holds_pointer},
};

/// Added lines that one change is read with, in bytes.
const MAX_ADDED_BYTES: usize = 64 * 1024 * 1024;

/// The difference between two commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeSet {
    /// One entry per path, in path order.
    pub files: Vec<FileChange>,
    /// Totals.
    pub stat: Stat,
}

/// Totals of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Files that differ.
    pub files: usize,
    /// Lines added.
    pub insertions: usize,
    /// Lines removed.
    pub deletions: usize,
}

/// One path of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The path after the change; for a deletion the path before it. Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The path before a rename.
    pub old_path: Option<String>,
    /// What happened.
    pub kind: ChangeKind,
    /// What the path is after the change; for a deletion what it was. A submodule when it is one on either side.
    pub mode: FileMode,
    /// Size after the change; 0 for a deletion.
    pub size_bytes: u64,
    /// Lines that the change adds, without their ends. Empty for binary files.
    pub added_lines: Vec<String>,
    /// True when lines are missing, because the whole change adds more than 64 MiB of them.
    pub is_cut: bool,
    /// True when Git LFS keeps the content of this path, before or after the change, and the change puts something else than
    /// a pointer there.
    pub breaks_lfs: bool,
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content or mode differs.
    Modified,
    /// It is gone.
    Deleted,
    /// It moved, perhaps with changes.
    Renamed,
}

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileMode {
    /// A file.
    Regular,
    /// A file that can be executed.
    Executable,
    /// A symbolic link and what it points to.
    Symlink(String),
    /// A submodule.
    Submodule,
}

/// One commit, for policy and people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitInfo {
    /// Its id.
    pub id: CommitId,
    /// Its whole message.
    pub message: String,
    /// `Name <address>`.
    pub author: String,
    /// Its parents.
    pub parents: Vec<CommitId>,
}

/// `trees`: those that the difference is between.
pub(crate) fn change_set(
    repository: &git2::Repository,
    diff: &git2::Diff<'_>,
    trees: &[git2::Tree<'_>; 2],
) -> Result<ChangeSet, Error> {
    let stats = diff.stats()?;
    let stat = Stat {
        files: stats.files_changed(),
        insertions: stats.insertions(),
        deletions: stats.deletions(),
    };
    let mut attributes = trees.each_ref().map(|tree| Attributes::new(repository, tree));
    let (count, mut left) = (diff.deltas().len(), MAX_ADDED_BYTES);
    let files = (0..count)
        .map(|index| file_change(repository, diff, index, &mut attributes, &mut left))
        .collect::<Result<_, _>>()?;
    Ok(ChangeSet { files, stat })
}

fn file_change(
    repository: &git2::Repository,
    diff: &git2::Diff<'_>,
    index: usize,
    attributes: &mut [Attributes<'_>; 2],
    left: &mut usize,
) -> Result<FileChange, Error> {
    let delta = diff
        .get_delta(index)
        .ok_or_else(|| Error::Failed("a diff lost an entry".to_owned()))?;
    let kind = match delta.status() {
        git2::Delta::Added | git2::Delta::Copied => ChangeKind::Added,
        git2::Delta::Deleted => ChangeKind::Deleted,
        git2::Delta::Renamed => ChangeKind::Renamed,
        _ => ChangeKind::Modified,
    };
    let (old, new) = (delta.old_file(), delta.new_file());
    let shown = if kind == ChangeKind::Deleted { &old } else { &new };
    let is_blob = !matches!(new.mode(), git2::FileMode::Commit | git2::FileMode::Unreadable);
    let size_bytes = if kind == ChangeKind::Deleted || !is_blob {
        0
    } else {
        repository.odb()?.read_header(new.id())?.0 as u64
    };
    let path = lossy(shown.path_bytes());
    let breaks_lfs = kind != ChangeKind::Deleted
        && !matches!(new.mode(), git2::FileMode::Commit | git2::FileMode::Link)
        && attributes.iter_mut().any(|attributes| attributes.is_lfs(&path))
        && !holds_pointer(repository, new.id())?;
    let is_submodule = [&old, &new]
        .iter()
        .any(|file| file.mode() == git2::FileMode::Commit);
    let (added_lines, is_cut) = added_lines(diff, index, left)?;
    Ok(FileChange {
        path,
        old_path: (kind == ChangeKind::Renamed).then(|| lossy(old.path_bytes())),
        kind,
        mode: if is_submodule {
            FileMode::Submodule
        } else {
            file_mode(repository, shown)?
        },
        size_bytes,
        added_lines,
        is_cut,
        breaks_lfs,
    })
}

fn file_mode(repository: &git2::Repository, file: &git2::DiffFile<'_>) -> Result<FileMode, Error> {
    Ok(match file.mode() {
        git2::FileMode::BlobExecutable => FileMode::Executable,
        git2::FileMode::Link => FileMode::Symlink(lossy(Some(repository.find_blob(file.id())?.content()))),
        git2::FileMode::Commit => FileMode::Submodule,
        git2::FileMode::Unreadable
        | git2::FileMode::Tree
        | git2::FileMode::Blob
        | git2::FileMode::BlobGroupWritable => FileMode::Regular,
    })
}

/// The lines, and whether some are missing because no more bytes were `left`.
fn added_lines(diff: &git2::Diff<'_>, index: usize, left: &mut usize) -> Result<(Vec<String>, bool), Error> {
    let Some(patch) = git2::Patch::from_diff(diff, index)? else {
        return Ok((Vec::new(), false));
    };
    let mut lines = Vec::new();
    for hunk in 0..patch.num_hunks() {
        for line in 0..patch.num_lines_in_hunk(hunk)? {
            let line = patch.line_in_hunk(hunk, line)?;
            if line.origin() != '+' {
                continue;
            }
            let Some(rest) = left.checked_sub(line.content().len().max(1)) else {
                return Ok((lines, true));
            };
            *left = rest;
            let text = String::from_utf8_lossy(line.content());
            lines.push(text.trim_end_matches(['\n', '\r']).to_owned());
        }
    }
    Ok((lines, false))
}

fn lossy(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

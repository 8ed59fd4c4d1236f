//! What a change consists of, as policy reads it.

use std::{
    collections::{HashSet, hash_map::RandomState},
    hash::BuildHasher as _,
};

use domain::CommitId;

use crate::{
    Error,
    elsewhere::{Attributes, holds_pointer},
};

/// A larger text is not compared line by line; its readable parts are looked at as those of binary content, in bytes.
const MAX_COMPARED_BYTES: u64 = 1024 * 1024;
/// Shorter readable parts of binary content say nothing, in bytes.
const SHORTEST_RUN: usize = 8;

/// How much is looked at, of one change or of several that share it. What is used is gone.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Content of a file above this is not looked at, in bytes.
    pub max_file_bytes: u64,
    /// Paths that may differ in one change.
    pub max_files: usize,
    /// Sizes of the contents that are still compared, both sides of each path, in bytes.
    pub compared_bytes: u64,
    /// Added lines that are still given, in bytes.
    pub added_bytes: usize,
    /// Pairs of contents that were compared already: nothing new is in them.
    seen: HashSet<(git2::Oid, git2::Oid)>,
}

impl Budget {
    /// 5,000 paths, 512 MiB of content, 64 MiB of added lines.
    pub fn new(max_file_bytes: u64) -> Self {
        Self {
            max_file_bytes,
            max_files: 5_000,
            compared_bytes: 512 * 1024 * 1024,
            added_bytes: 64 * 1024 * 1024,
            seen: HashSet::new(),
        }
    }
}

/// Why the rest of a change was not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// More paths differ than the budget allows; none was looked at.
    Files {
        /// How many differ.
        count: usize,
    },
    /// The budget ended at this path; those after it were not looked at.
    Content {
        /// The path.
        path: String,
    },
}

/// Added lines in one piece of memory: millions of short ones cost what their bytes cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddedLines {
    text: String,
    count: usize,
}

impl AddedLines {
    /// The lines, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.text.split('\n').take(self.count)
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.count += 1;
    }
}

impl<T: AsRef<str>> FromIterator<T> for AddedLines {
    fn from_iter<I: IntoIterator<Item = T>>(lines: I) -> Self {
        let mut added = Self::default();
        for line in lines {
            added.push(line.as_ref());
        }
        added
    }
}

/// The difference between two commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeSet {
    /// One entry per path, in path order.
    pub files: Vec<FileChange>,
    /// Why paths are missing; absent: none is.
    pub cut: Option<Cut>,
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
    /// Lines that the change adds, without their ends; for a binary file, and for a text above 1 MiB, its new readable parts.
    /// Empty for a file above the budget's `max_file_bytes`, and for contents that an earlier change of the same budget
    /// compared.
    pub added_lines: AddedLines,
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
    /// `Name <address>`.
    pub committer: String,
    /// Names of header lines other than tree, parent, author and committer.
    pub other_headers: Vec<String>,
    /// Its parents.
    pub parents: Vec<CommitId>,
}

/// `trees`: those that the difference is between. Stops where the budget ends.
pub(crate) fn change_set(
    repository: &git2::Repository,
    diff: &git2::Diff<'_>,
    trees: &[git2::Tree<'_>; 2],
    budget: &mut Budget,
) -> Result<ChangeSet, Error> {
    let count = diff.deltas().len();
    if count > budget.max_files {
        return Ok(ChangeSet {
            cut: Some(Cut::Files { count }),
            ..ChangeSet::default()
        });
    }
    let mut attributes = trees.each_ref().map(|tree| Attributes::new(repository, tree));
    let mut change = ChangeSet::default();
    for index in 0..count {
        let mut file = file_change(repository, diff, index, &mut attributes)?;
        let fits = read_added(repository, diff, index, &mut file, budget)?;
        if !fits {
            change.cut = Some(Cut::Content { path: file.path });
            break;
        }
        change.files.push(file);
    }
    Ok(change)
}

/// Everything but the added lines.
fn file_change(
    repository: &git2::Repository,
    diff: &git2::Diff<'_>,
    index: usize,
    attributes: &mut [Attributes<'_>; 2],
) -> Result<FileChange, Error> {
    let delta = delta(diff, index)?;
    let kind = match delta.status() {
        git2::Delta::Added | git2::Delta::Copied => ChangeKind::Added,
        git2::Delta::Deleted => ChangeKind::Deleted,
        git2::Delta::Renamed => ChangeKind::Renamed,
        _ => ChangeKind::Modified,
    };
    let (old, new) = (delta.old_file(), delta.new_file());
    let shown = if kind == ChangeKind::Deleted { &old } else { &new };
    let path = lossy(shown.path_bytes());
    let breaks_lfs = kind != ChangeKind::Deleted
        && !matches!(new.mode(), git2::FileMode::Commit | git2::FileMode::Link)
        && attributes.iter_mut().any(|attributes| attributes.is_lfs(&path))
        && !holds_pointer(repository, new.id())?;
    let is_submodule = [&old, &new]
        .iter()
        .any(|file| file.mode() == git2::FileMode::Commit);
    Ok(FileChange {
        path,
        old_path: (kind == ChangeKind::Renamed).then(|| lossy(old.path_bytes())),
        kind,
        mode: if is_submodule {
            FileMode::Submodule
        } else {
            file_mode(repository, shown)?
        },
        size_bytes: if kind == ChangeKind::Deleted {
            0
        } else {
            size(repository, &new)?
        },
        added_lines: AddedLines::default(),
        breaks_lfs,
    })
}

fn delta<'a>(diff: &'a git2::Diff<'_>, index: usize) -> Result<git2::DiffDelta<'a>, Error> {
    diff.get_delta(index)
        .ok_or_else(|| Error::Failed("a diff lost an entry".into()))
}

/// The size of one side's content; 0 for what has none.
fn size(repository: &git2::Repository, file: &git2::DiffFile<'_>) -> Result<u64, Error> {
    let is_blob = !matches!(file.mode(), git2::FileMode::Commit | git2::FileMode::Unreadable);
    if !is_blob || file.id().is_zero() {
        return Ok(0);
    }
    Ok(repository.odb()?.read_header(file.id())?.0 as u64)
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

/// Reads what a path adds; false when the budget does not allow it.
fn read_added(
    repository: &git2::Repository,
    diff: &git2::Diff<'_>,
    index: usize,
    file: &mut FileChange,
    budget: &mut Budget,
) -> Result<bool, Error> {
    if file.kind == ChangeKind::Deleted {
        return Ok(true);
    }
    let delta = delta(diff, index)?;
    let (old, new) = (delta.old_file(), delta.new_file());
    let (old_bytes, new_bytes) = (size(repository, &old)?, size(repository, &new)?);
    let is_too_large = old_bytes.max(new_bytes) > budget.max_file_bytes;
    if is_too_large || old.id() == new.id() || !budget.seen.insert((old.id(), new.id())) {
        return Ok(true);
    }
    let Some(left) = budget.compared_bytes.checked_sub(old_bytes + new_bytes) else {
        return Ok(false);
    };
    budget.compared_bytes = left;
    // The library needs some hundred bytes for each line that it compares.
    let is_compared = old_bytes.max(new_bytes) <= MAX_COMPARED_BYTES;
    let patch = if is_compared {
        git2::Patch::from_diff(diff, index)?
    } else {
        None
    };
    let lines = match patch {
        Some(patch) if patch.num_hunks() > 0 => added_lines(&patch, &mut budget.added_bytes)?,
        // libgit2 compares no lines of what it takes for binary: one NUL byte is enough for that.
        _ => added_runs(repository, &old, &new, &mut budget.added_bytes)?,
    };
    let fits = lines.is_some();
    file.added_lines = lines.unwrap_or_default();
    Ok(fits)
}

/// The added lines; absent when there are more bytes than are `left`.
fn added_lines(patch: &git2::Patch<'_>, left: &mut usize) -> Result<Option<AddedLines>, Error> {
    let mut lines = AddedLines::default();
    for hunk in 0..patch.num_hunks() {
        for line in 0..patch.num_lines_in_hunk(hunk)? {
            let line = patch.line_in_hunk(hunk, line)?;
            if line.origin() != '+' {
                continue;
            }
            let Some(rest) = left.checked_sub(line.content().len().max(1)) else {
                return Ok(None);
            };
            *left = rest;
            let text = String::from_utf8_lossy(line.content());
            lines.push(text.trim_end_matches(['\n', '\r']));
        }
    }
    Ok(Some(lines))
}

/// The readable parts of content that were not there before; absent when there are more bytes than are `left`.
fn added_runs(
    repository: &git2::Repository,
    old: &git2::DiffFile<'_>,
    new: &git2::DiffFile<'_>,
    left: &mut usize,
) -> Result<Option<AddedLines>, Error> {
    let hasher = RandomState::new();
    let mut before = HashSet::new();
    each_run(repository, old, |run| {
        before.insert(hasher.hash_one(run));
        true
    })?;
    let (mut added, mut fits) = (AddedLines::default(), true);
    each_run(repository, new, |run| {
        if !before.contains(&hasher.hash_one(run)) {
            fits = left.checked_sub(run.len() + 1).is_some_and(|rest| {
                *left = rest;
                true
            });
            if fits {
                added.push(run);
            }
        }
        fits
    })?;
    Ok(fits.then_some(added))
}

/// Calls for each run of printable characters with the zero bytes between them taken out, so that UTF-16 is read as well;
/// until it is told to end.
fn each_run(
    repository: &git2::Repository,
    file: &git2::DiffFile<'_>,
    mut take: impl FnMut(&str) -> bool,
) -> Result<(), Error> {
    let is_blob = !matches!(
        file.mode(),
        git2::FileMode::Commit | git2::FileMode::Unreadable | git2::FileMode::Tree
    );
    if !is_blob || file.id().is_zero() {
        return Ok(());
    }
    let blob = repository.find_blob(file.id())?;
    let mut run = String::new();
    // One more, which ends the last run.
    for byte in blob.content().iter().copied().chain(std::iter::once(b'\n')) {
        match byte {
            0 => {}
            b' '..=b'~' | b'\t' => run.push(char::from(byte)),
            _ => {
                if run.len() >= SHORTEST_RUN && !take(&run) {
                    return Ok(());
                }
                run.clear();
            }
        }
    }
    Ok(())
}

fn lossy(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

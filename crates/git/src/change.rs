//! Contents of a change, as the policy inspects them.

use std::{
    collections::{HashSet, hash_map::RandomState},
    hash::BuildHasher as _,
};

use domain::CommitId;

use crate::{
    Error,
    external_content::{LfsAttributes, is_pointer_blob},
};

// Larger texts are not compared line by line but by their printable runs, like binary content. In bytes.
const MAX_COMPARED_BYTES: u64 = 1024 * 1024;
// Shorter printable runs of binary content occur by chance, in bytes.
const SHORTEST_RUN: usize = 8;

/// Remaining budget of an inspection, for one change or several that share it.
#[derive(Clone, Debug)]
pub struct InspectionBudget {
    /// Contents of larger files are not inspected, in bytes.
    pub max_file_bytes: u64,
    /// Maximum number of paths that differ in one change.
    pub max_files: usize,
    /// Remaining size of contents to compare, both sides of each path, in bytes.
    pub compared_bytes: u64,
    /// Remaining size of added lines to return, in bytes.
    pub added_bytes: usize,
    /// Pairs of contents that were compared before and contain nothing new.
    seen: HashSet<(git2::Oid, git2::Oid)>,
}

impl InspectionBudget {
    /// Budget of 5,000 paths, 512 MiB of content and 64 MiB of added lines.
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

/// Limit that ended the inspection of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InspectionCutoff {
    /// More paths differ than the budget permits; none was inspected.
    Files {
        /// Number of paths that differ.
        count: usize,
    },
    /// The budget was exhausted at this path; the paths after it were not inspected.
    Content {
        /// First path that was not inspected.
        path: String,
    },
}

/// Added lines in one allocation, so that millions of short lines cost only their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddedLines {
    text: String,
    count: usize,
}

impl AddedLines {
    /// Iterates over the lines in their order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.text.split('\n').take(self.count)
    }

    /// The lines as one text, each with a line end.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Number of added lines.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// True without added lines.
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

/// Difference between two commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeSet {
    /// One entry per path, in path order.
    pub files: Vec<PathChange>,
    /// Limit that made paths missing; absent for a complete list.
    pub cut: Option<InspectionCutoff>,
}

/// One path of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// Path after the change; for a deletion the path before it. Invalid UTF-8 is replaced.
    pub path: String,
    /// Path before a rename.
    pub old_path: Option<String>,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Mode after the change; for a deletion the mode before it. Submodule when either side is one.
    pub mode: FileMode,
    /// Size after the change, in bytes; 0 for a deletion.
    pub size_bytes: u64,
    /// Added lines without line ends. For a binary file, and for a text above 1 MiB: its new printable runs.
    ///
    /// Empty for a file above the budget's `max_file_bytes`, and for contents that an earlier change of the
    /// same budget compared.
    pub added_lines: AddedLines,
    /// True when Git LFS stores the content of this path, before or after the change, and the change writes
    /// something else than a pointer.
    pub breaks_lfs: bool,
}

/// Kind of change of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The path is new.
    Added,
    /// The content or mode differs.
    Modified,
    /// The path was removed.
    Deleted,
    /// The path was moved, possibly with changes.
    Renamed,
}

/// Mode of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileMode {
    /// Regular file, not executable.
    Regular,
    /// Regular file, executable.
    Executable,
    /// Symbolic link with its target.
    Symlink(String),
    /// Commit of another repository.
    Submodule,
}

/// One commit, for policy and reviewers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitInfo {
    /// Id of the commit.
    pub id: CommitId,
    /// Complete message of the commit.
    pub message: String,
    /// Author as `Name <address>`.
    pub author: String,
    /// Committer as `Name <address>`.
    pub committer: String,
    /// Names of the header lines besides tree, parent, author and committer.
    pub other_headers: Vec<String>,
    /// Ids of its parents.
    pub parents: Vec<CommitId>,
}

/// Inspects a diff between two trees until the budget is exhausted.
pub(crate) fn inspect_change(
    repository: &git2::Repository,
    diff: &git2::Diff<'_>,
    trees: &[git2::Tree<'_>; 2],
    budget: &mut InspectionBudget,
) -> Result<ChangeSet, Error> {
    let count = diff.deltas().len();
    if count > budget.max_files {
        return Ok(ChangeSet {
            cut: Some(InspectionCutoff::Files { count }),
            ..ChangeSet::default()
        });
    }
    let mut attributes = trees.each_ref().map(|tree| LfsAttributes::new(repository, tree));
    let mut change = ChangeSet::default();
    for index in 0..count {
        let mut file = inspect_path(repository, diff, index, &mut attributes)?;
        let fits = read_added(repository, diff, index, &mut file, budget)?;
        if !fits {
            change.cut = Some(InspectionCutoff::Content { path: file.path });
            break;
        }
        change.files.push(file);
    }
    Ok(change)
}

/// Reads the properties of a path without its added lines.
fn inspect_path(
    repository: &git2::Repository,
    diff: &git2::Diff<'_>,
    index: usize,
    attributes: &mut [LfsAttributes<'_>; 2],
) -> Result<PathChange, Error> {
    let delta = find_delta(diff, index)?;
    let kind = match delta.status() {
        git2::Delta::Added | git2::Delta::Copied => ChangeKind::Added,
        git2::Delta::Deleted => ChangeKind::Deleted,
        git2::Delta::Renamed => ChangeKind::Renamed,
        git2::Delta::Unmodified
        | git2::Delta::Modified
        | git2::Delta::Ignored
        | git2::Delta::Untracked
        | git2::Delta::Typechange
        | git2::Delta::Unreadable
        | git2::Delta::Conflicted => ChangeKind::Modified,
    };
    let (old, new) = (delta.old_file(), delta.new_file());
    let shown = if kind == ChangeKind::Deleted { &old } else { &new };
    let path = decode_lossy(shown.path_bytes());
    // Attributes of both sides count: a change must not remove the rule and commit the content at once. An empty file is
    // its own pointer.
    let breaks_lfs = kind != ChangeKind::Deleted
        && !matches!(new.mode(), git2::FileMode::Commit | git2::FileMode::Link)
        && read_side_size(repository, &new)? > 0
        && attributes.iter_mut().any(|attributes| attributes.is_lfs(&path))
        && !is_pointer_blob(repository, new.id())?;
    let is_submodule = [&old, &new]
        .iter()
        .any(|file| file.mode() == git2::FileMode::Commit);
    Ok(PathChange {
        path,
        old_path: (kind == ChangeKind::Renamed).then(|| decode_lossy(old.path_bytes())),
        kind,
        mode: if is_submodule {
            FileMode::Submodule
        } else {
            file_mode(repository, shown)?
        },
        size_bytes: if kind == ChangeKind::Deleted {
            0
        } else {
            read_side_size(repository, &new)?
        },
        added_lines: AddedLines::default(),
        breaks_lfs,
    })
}

fn find_delta<'a>(diff: &'a git2::Diff<'_>, index: usize) -> Result<git2::DiffDelta<'a>, Error> {
    diff.get_delta(index)
        .ok_or_else(|| Error::Failed("a diff lost an entry".into()))
}

/// Size of one side's content; 0 for a side without content.
fn read_side_size(repository: &git2::Repository, file: &git2::DiffFile<'_>) -> Result<u64, Error> {
    let is_blob = !matches!(file.mode(), git2::FileMode::Commit | git2::FileMode::Unreadable);
    if !is_blob || file.id().is_zero() {
        return Ok(0);
    }
    Ok(repository.odb()?.read_header(file.id())?.0 as u64)
}

fn file_mode(repository: &git2::Repository, file: &git2::DiffFile<'_>) -> Result<FileMode, Error> {
    Ok(match file.mode() {
        git2::FileMode::BlobExecutable => FileMode::Executable,
        git2::FileMode::Link => {
            FileMode::Symlink(decode_lossy(Some(repository.find_blob(file.id())?.content())))
        }
        git2::FileMode::Commit => FileMode::Submodule,
        git2::FileMode::Unreadable
        | git2::FileMode::Tree
        | git2::FileMode::Blob
        | git2::FileMode::BlobGroupWritable => FileMode::Regular,
    })
}

/// Reads the added lines of a path; false when the budget is exhausted.
fn read_added(
    repository: &git2::Repository,
    diff: &git2::Diff<'_>,
    index: usize,
    file: &mut PathChange,
    budget: &mut InspectionBudget,
) -> Result<bool, Error> {
    if file.kind == ChangeKind::Deleted {
        return Ok(true);
    }
    let delta = find_delta(diff, index)?;
    let (old, new) = (delta.old_file(), delta.new_file());
    let (old_bytes, new_bytes) = (
        read_side_size(repository, &old)?,
        read_side_size(repository, &new)?,
    );
    let is_too_large = old_bytes.max(new_bytes) > budget.max_file_bytes;
    // Thousands of paths may share one content, so each pair of contents is compared once.
    if is_too_large || old.id() == new.id() || !budget.seen.insert((old.id(), new.id())) {
        return Ok(true);
    }
    let Some(left) = budget.compared_bytes.checked_sub(old_bytes + new_bytes) else {
        return Ok(false);
    };
    budget.compared_bytes = left;
    // libgit2 needs some hundred bytes of memory for each line that it compares.
    let is_compared = old_bytes.max(new_bytes) <= MAX_COMPARED_BYTES;
    let patch = if is_compared {
        git2::Patch::from_diff(diff, index)?
    } else {
        None
    };
    let lines = match patch {
        Some(patch) if patch.num_hunks() > 0 => added_lines(&patch, &mut budget.added_bytes)?,
        // libgit2 does not compare binary content, and one NUL byte makes content binary for it.
        _ => added_runs(repository, &old, &new, &mut budget.added_bytes)?,
    };
    let fits = lines.is_some();
    file.added_lines = lines.unwrap_or_default();
    Ok(fits)
}

/// Collects the added lines; `None` when they exceed the `left` bytes.
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

/// Collects the printable runs that the previous content lacks; `None` when they exceed the `left` bytes.
fn added_runs(
    repository: &git2::Repository,
    old: &git2::DiffFile<'_>,
    new: &git2::DiffFile<'_>,
    left: &mut usize,
) -> Result<Option<AddedLines>, Error> {
    // Hashes instead of texts bound the memory for the previous content.
    let hasher = RandomState::new();
    let mut before = HashSet::new();
    for_each_run(repository, old, |run| {
        before.insert(hasher.hash_one(run));
        true
    })?;
    let (mut added, mut fits) = (AddedLines::default(), true);
    for_each_run(repository, new, |run| {
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

/// Calls `take` for each run of printable characters until it returns false. Zero bytes are skipped, so that
/// UTF-16 is read as well.
fn for_each_run(
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
    // A final newline ends the last run.
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

fn decode_lossy(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

//! Merge of a pull request's head with its base branch, with markers in the files that git cannot merge.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use domain::{CommitAuthor, CommitId, ConflictFile, ConflictKind};
use git2::{IndexConflict, IndexEntry, IndexTime, MergeFileInput, MergeFileOptions, MergeOptions, Oid};

use crate::{BareRepository, Error, history::commit_signature, repository::convert_commit_id};

// Modes of tree entries.
const LINK: u32 = 0o120_000;
const SUBMODULE: u32 = 0o160_000;
// Larger files are not merged by lines, in bytes: a comparison takes many times their size in memory.
const MAX_MERGED_BYTES: usize = 2 * 1024 * 1024;
// Bytes in which a NUL makes content binary, as git decides it.
const BINARY_WINDOW: usize = 8_000;
// Priority above the packs and loose objects on disk.
const MEMORY_PRIORITY: i32 = 1_000;
/// Labels of the sides behind the markers.
const OURS: &str = "pull request";
const ANCESTOR: &str = "merge base";
const THEIRS: &str = "base branch";

/// Merge of two commits as far as git can merge them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedMerge {
    /// Best common ancestor of both sides.
    pub ancestor: CommitId,
    /// Commit with both sides as parents. Its files have markers where the sides conflict; it is never pushed.
    pub preview: CommitId,
    /// Files that git cannot merge, in path order.
    pub conflicts: Vec<ConflictFile>,
}

impl BareRepository {
    /// Keeps all objects that this handle writes from now on in memory.
    ///
    /// # Errors
    /// [`Error::Failed`] when git refuses it.
    pub fn write_to_memory(&self) -> Result<(), Error> {
        let objects = self.objects().odb()?;
        objects.add_new_mempack_backend(MEMORY_PRIORITY)?;
        Ok(())
    }

    /// Merges two commits. Two processes that merge the same commits get the same preview.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks a commit or the commits share no history.
    pub fn prepare_merge(&self, ours: &CommitId, theirs: &CommitId) -> Result<PreparedMerge, Error> {
        let ancestor = self.merge_base(ours, theirs)?.ok_or_else(|| Error::Missing {
            what: format!("common history of {} and {}", ours.short(), theirs.short()),
            source: None,
        })?;
        let git = self.objects();
        let (our_commit, their_commit) = (self.commit(ours)?, self.commit(theirs)?);
        let mut options = MergeOptions::new();
        options.find_renames(true);
        let mut index = git.merge_commits(&our_commit, &their_commit, Some(&options))?;
        let groups = index.conflicts()?.collect::<Result<Vec<_>, git2::Error>>()?;
        // libgit2 lists each path of a rename by itself, so a lone side means that another path belongs to it.
        let is_renamed = groups.iter().any(is_lone_side);
        let mut conflicts = Vec::new();
        for group in groups {
            let resolved = self.merge_group(&group, is_renamed)?;
            index.conflict_remove(Path::new(OsStr::from_bytes(&resolved.entry.path)))?;
            index.add(&resolved.entry)?;
            conflicts.push(resolved.file);
        }
        conflicts.sort_by(|one, other| one.path.cmp(&other.path));
        let tree = git.find_tree(index.write_tree_to(git)?)?;
        let who = commit_signature(&CommitAuthor::journeyman(), 0)?;
        let parents = [&our_commit, &their_commit];
        let preview = git.commit(None, &who, &who, "Merge preview\n", &tree, &parents)?;
        Ok(PreparedMerge {
            ancestor,
            preview: convert_commit_id(preview)?,
            conflicts,
        })
    }

    /// Merges the sides of one path, with markers if they are text.
    fn merge_group(&self, group: &IndexConflict, is_renamed: bool) -> Result<MergedPath, Error> {
        let sides = [&group.our, &group.their];
        let shown = sides.into_iter().flatten().next().or(group.ancestor.as_ref());
        let shown = shown.ok_or_else(|| Error::Failed("a conflict has no side".into()))?;
        let as_it_is = |kind| MergedPath::of(shown, shown.id, (kind, 0, 0));
        let known = sides.into_iter().flatten().chain(&group.ancestor);
        if known.clone().any(|entry| entry.mode == SUBMODULE) {
            return Ok(as_it_is(ConflictKind::Submodule));
        }
        // No tool of a model can name such a path, so markers in the file would stay.
        if std::str::from_utf8(&shown.path).is_err() {
            return Ok(as_it_is(ConflictKind::Binary));
        }
        let (Some(our), Some(their)) = (&group.our, &group.their) else {
            let kind = if is_renamed {
                ConflictKind::Renamed
            } else {
                ConflictKind::RemovedAndChanged
            };
            return Ok(as_it_is(kind));
        };
        if known.clone().any(|entry| entry.mode == LINK) {
            return Ok(as_it_is(ConflictKind::Mode));
        }
        let git = self.objects();
        let (ours, theirs) = (git.find_blob(our.id)?, git.find_blob(their.id)?);
        let before = group.ancestor.as_ref().map(|entry| git.find_blob(entry.id));
        let before = before.transpose()?;
        let contents = [
            before.as_ref().map_or(&[][..], |blob| blob.content()),
            ours.content(),
            theirs.content(),
        ];
        if contents
            .iter()
            .any(|content| content.len() > MAX_MERGED_BYTES || is_binary(content))
        {
            return Ok(as_it_is(ConflictKind::Binary));
        }
        let merged = merge_text(contents)?;
        let kind = match &group.ancestor {
            Some(_) => ConflictKind::Content,
            None => ConflictKind::BothAdded,
        };
        let id = git.blob(&merged)?;
        let hunks = count_markers(&merged, &format!("<<<<<<< {OURS}"));
        let hunks = u32::try_from(hunks).unwrap_or(u32::MAX);
        let mut path = MergedPath::of(our, id, (kind, merged.len() as u64, hunks));
        path.entry.mode = merge_modes(group.ancestor.as_ref(), our, their);
        Ok(path)
    }

    /// Lists the paths at which `result` has more marker lines than both sides.
    pub(crate) fn find_markers(
        &self,
        paths: &BTreeSet<PathBuf>,
        result: &git2::Tree<'_>,
        sides: [&git2::Tree<'_>; 2],
    ) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        for path in paths {
            let count = |tree: &git2::Tree<'_>| {
                let content = self.read_text(tree, path)?;
                let lines = content.split(|byte| *byte == b'\n');
                Ok::<_, Error>(lines.filter(|line| is_marker(line)).count())
            };
            let [one, other] = sides;
            if count(result)? > count(one)?.max(count(other)?) {
                found.push(path.to_string_lossy().into_owned());
            }
        }
        Ok(found)
    }

    /// Reads a file of a tree; empty for a missing path, a folder, a link, and a file too large to merge.
    pub(crate) fn read_text(&self, tree: &git2::Tree<'_>, path: &Path) -> Result<Vec<u8>, Error> {
        let Ok(entry) = tree.get_path(path) else {
            return Ok(Vec::new());
        };
        let is_file = entry.kind() == Some(git2::ObjectType::Blob) && entry.filemode() != 0o120_000;
        if !is_file || self.objects().odb()?.read_header(entry.id())?.0 > MAX_MERGED_BYTES {
            return Ok(Vec::new());
        }
        Ok(self.objects().find_blob(entry.id())?.content().to_vec())
    }
}

/// One conflicting path as the preview has it.
struct MergedPath {
    entry: IndexEntry,
    file: ConflictFile,
}

impl MergedPath {
    fn of(side: &IndexEntry, id: Oid, (kind, bytes, hunks): (ConflictKind, u64, u32)) -> Self {
        let never = || IndexTime::new(0, 0);
        Self {
            entry: IndexEntry {
                ctime: never(),
                mtime: never(),
                dev: 0,
                ino: 0,
                mode: side.mode,
                uid: 0,
                gid: 0,
                file_size: 0,
                id,
                // The stage is part of the flags; 0 means merged.
                flags: 0,
                flags_extended: 0,
                path: side.path.clone(),
            },
            file: ConflictFile {
                path: String::from_utf8_lossy(&side.path).into_owned(),
                kind,
                bytes,
                hunks,
            },
        }
    }
}

/// Returns the mode that a side changed, as git does for files that it merges alone. Of two new files, one program is
/// enough.
fn merge_modes(ancestor: Option<&IndexEntry>, our: &IndexEntry, their: &IndexEntry) -> u32 {
    match ancestor {
        Some(before) if before.mode == our.mode => their.mode,
        Some(_) => our.mode,
        None => our.mode.max(their.mode),
    }
}

fn is_lone_side(group: &IndexConflict) -> bool {
    group.ancestor.is_none() && group.our.is_some() != group.their.is_some()
}

/// Returns true for content with a NUL byte near its start.
fn is_binary(content: &[u8]) -> bool {
    content.iter().take(BINARY_WINDOW).any(|byte| *byte == 0)
}

fn merge_text([before, ours, theirs]: [&[u8]; 3]) -> Result<Vec<u8>, Error> {
    let inputs = [before, ours, theirs].map(|content| {
        let mut input = MergeFileInput::new();
        input.content(content);
        input
    });
    let mut options = MergeFileOptions::new();
    options
        .ancestor_label(ANCESTOR)
        .our_label(OURS)
        .their_label(THEIRS)
        .style_diff3(true);
    let [before, ours, theirs] = &inputs;
    let merged = git2::merge_file(before, ours, theirs, Some(&mut options))?;
    Ok(merged.content().to_vec())
}

fn count_markers(content: &[u8], marker: &str) -> usize {
    let lines = content.split(|byte| *byte == b'\n');
    lines.filter(|line| line.starts_with(marker.as_bytes())).count()
}

/// Returns true for a line that git writes around a conflict. A line of seven equal signs alone also underlines
/// titles, so it does not count.
fn is_marker(line: &[u8]) -> bool {
    [b'<', b'|', b'>'].iter().any(|sign| {
        let (is_run, rest) = match line.split_at_checked(7) {
            Some((run, rest)) => (run.iter().all(|byte| byte == sign), rest),
            None => (false, line),
        };
        is_run && matches!(rest.first(), None | Some(b' ' | b'\r'))
    })
}

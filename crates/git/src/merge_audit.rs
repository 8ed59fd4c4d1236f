//! Audit of a resolved merge: hunks of either side that the result lacks, and leftover markers.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
};

use domain::{CommitId, LostHunk, MergeSide};
use git2::{Delta, Diff, DiffFindOptions, DiffOptions, Oid, Tree};

use crate::{BareRepository, Error, PreparedMerge};

// Maximum of reported hunks. A result that lacks more of them resolves nothing.
const MOST_HUNKS: usize = 200;
// Changed paths above which only exact renames are found: each inexact one compares contents.
const MOST_COMPARED: usize = 1_000;
// Larger files count as a whole, in bytes.
const MAX_COMPARED_BYTES: i64 = 2 * 1024 * 1024;

/// Result of an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeAudit {
    /// The merge as git prepares it.
    pub merge: PreparedMerge,
    /// Hunks of either side that the result lacks; at most 200.
    pub lost: Vec<LostHunk>,
    /// Paths with leftover markers.
    pub markers: Vec<String>,
}

impl BareRepository {
    /// Audits the tree `result` of a merge of two commits.
    ///
    /// A hunk is kept when each of its added lines occurs in the result as often as both sides together want it.
    /// White space around a line does not matter. So a merge that git makes alone loses nothing.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks an object or the commits share no history.
    pub fn audit_merge(&self, ours: &CommitId, theirs: &CommitId, result: Oid) -> Result<MergeAudit, Error> {
        let merge = self.prepare_merge(ours, theirs)?;
        let tree = |commit: &CommitId| Ok::<_, Error>(self.commit(commit)?.tree()?);
        let (our_tree, their_tree) = (tree(ours)?, tree(theirs)?);
        let before = tree(&merge.ancestor)?;
        let result = self.objects().find_tree(result)?;
        let sides = [
            SideChange::new(self, MergeSide::PullRequest, &before, &our_tree)?,
            SideChange::new(self, MergeSide::Base, &before, &their_tree)?,
        ];
        let conflicts: BTreeSet<String> = merge.conflicts.iter().map(|file| file.path.clone()).collect();
        let trees = MergeTrees {
            repository: self,
            preview: tree(&merge.preview)?,
            before,
            result,
            conflicts,
        };
        let [pull_request, base] = &sides;
        let mut lost = Vec::new();
        let mut compared = trees.conflicts.iter().map(PathBuf::from).collect();
        for (side, other) in [(pull_request, base), (base, pull_request)] {
            for index in 0..side.diff.deltas().len() {
                trees.check_path((side, other), index, &mut lost, &mut compared)?;
            }
        }
        lost.truncate(MOST_HUNKS);
        let markers = self.find_markers(&compared, &trees.result, [pull_request.tree, base.tree])?;
        Ok(MergeAudit { merge, lost, markers })
    }

    /// Audits the files of the commit `head` like [`Self::audit_merge`].
    ///
    /// # Errors
    /// Those of [`Self::audit_merge`].
    pub fn audit_merge_commit(
        &self,
        ours: &CommitId,
        theirs: &CommitId,
        head: &CommitId,
    ) -> Result<MergeAudit, Error> {
        let result = self.commit(head)?.tree_id();
        self.audit_merge(ours, theirs, result)
    }
}

/// Changes of one side since the common ancestor.
struct SideChange<'a> {
    side: MergeSide,
    tree: &'a Tree<'a>,
    diff: Diff<'a>,
    /// Index of each delta by its path before the change.
    by_old_path: BTreeMap<PathBuf, usize>,
}

/// Path, content and mode of a side.
struct SideFile {
    status: Delta,
    old_path: PathBuf,
    path: PathBuf,
    old: TreeLeaf,
    new: TreeLeaf,
}

/// Content and mode of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TreeLeaf {
    id: Oid,
    mode: i32,
}

/// One hunk of a side without context.
struct SideHunk {
    /// Lines before the change: the first one, and the one after the last.
    old: (u32, u32),
    added: Vec<Vec<u8>>,
    removed: Vec<Vec<u8>>,
}

impl<'a> SideChange<'a> {
    fn new(
        repository: &'a BareRepository,
        side: MergeSide,
        before: &Tree<'_>,
        tree: &'a Tree<'a>,
    ) -> Result<Self, Error> {
        let mut options = DiffOptions::new();
        options
            .include_typechange(true)
            .ignore_submodules(false)
            .context_lines(0)
            .max_size(MAX_COMPARED_BYTES);
        let git = repository.objects();
        let mut diff = git.diff_tree_to_tree(Some(before), Some(tree), Some(&mut options))?;
        let mut moved = DiffFindOptions::new();
        moved.renames(true);
        moved.exact_match_only(diff.deltas().len() > MOST_COMPARED);
        diff.find_similar(Some(&mut moved))?;
        let old_path =
            |(index, delta): (usize, git2::DiffDelta<'_>)| Some((delta.old_file().path()?.to_owned(), index));
        let by_old_path = diff.deltas().enumerate().filter_map(old_path).collect();
        Ok(Self {
            side,
            tree,
            diff,
            by_old_path,
        })
    }

    fn file(&self, index: usize) -> Option<SideFile> {
        let delta = self.diff.get_delta(index)?;
        let (old, new) = (delta.old_file(), delta.new_file());
        let leaf = |file: &git2::DiffFile<'_>| TreeLeaf {
            id: file.id(),
            mode: i32::from(file.mode()),
        };
        Some(SideFile {
            status: delta.status(),
            old_path: old.path()?.to_owned(),
            path: new.path()?.to_owned(),
            old: leaf(&old),
            new: leaf(&new),
        })
    }

    /// Returns the path to which this side moved a file; `None` when it left it.
    fn moved_path(&self, old_path: &Path) -> Option<PathBuf> {
        let file = self.file(*self.by_old_path.get(old_path)?)?;
        (file.status == Delta::Renamed).then_some(file.path)
    }

    /// Returns the hunks of a delta; `None` for content that is not compared by lines.
    fn hunks(&self, index: usize) -> Result<Option<Vec<SideHunk>>, Error> {
        let Some(patch) = git2::Patch::from_diff(&self.diff, index)?.filter(|patch| patch.num_hunks() > 0)
        else {
            return Ok(None);
        };
        let mut hunks = Vec::new();
        for hunk in 0..patch.num_hunks() {
            let (lines, _) = patch.hunk(hunk)?;
            // Without old lines the hunk is between this line and the next.
            let start = lines.old_start() + u32::from(lines.old_lines() == 0);
            let mut found = SideHunk {
                old: (start, start + lines.old_lines()),
                added: Vec::new(),
                removed: Vec::new(),
            };
            for line in 0..patch.num_lines_in_hunk(hunk)? {
                let line = patch.line_in_hunk(hunk, line)?;
                let text = line.content().trim_ascii().to_vec();
                if text.is_empty() {
                    continue;
                }
                match line.origin() {
                    '+' => found.added.push(text),
                    '-' => found.removed.push(text),
                    _ => {}
                }
            }
            hunks.push(found);
        }
        Ok(Some(hunks))
    }

    /// Returns the hunks of the file with this path before the change; empty when this side left it.
    fn hunks_of(&self, old_path: &Path) -> Result<Vec<SideHunk>, Error> {
        match self.by_old_path.get(old_path) {
            Some(index) => Ok(self.hunks(*index)?.unwrap_or_default()),
            None => Ok(Vec::new()),
        }
    }
}

impl SideHunk {
    /// Returns true for hunks that overlap or touch: git merges them only if they are equal.
    const fn touches(&self, other: &Self) -> bool {
        self.old.0 <= other.old.1 && other.old.0 <= self.old.1
    }
}

/// Trees that an audit compares.
struct MergeTrees<'a> {
    repository: &'a BareRepository,
    before: Tree<'a>,
    preview: Tree<'a>,
    result: Tree<'a>,
    /// Paths that git cannot merge, with U+FFFD in place of bytes that are not UTF-8.
    conflicts: BTreeSet<String>,
}

impl MergeTrees<'_> {
    /// Checks one changed path of a side. Adds lost hunks, and the path if its lines were compared.
    fn check_path(
        &self,
        (side, other): (&SideChange<'_>, &SideChange<'_>),
        index: usize,
        lost: &mut Vec<LostHunk>,
        compared: &mut BTreeSet<PathBuf>,
    ) -> Result<(), Error> {
        let Some(file) = side.file(index) else {
            return Ok(());
        };
        let as_a_whole = |path: &Path, is_removal: bool| LostHunk {
            side: side.side,
            path: path.to_string_lossy().into_owned(),
            lines: Vec::new(),
            is_removal,
        };
        let is_moved = file.status == Delta::Renamed;
        if (file.status == Delta::Deleted || is_moved) && find_leaf(&self.result, &file.old_path).is_some() {
            lost.push(as_a_whole(&file.old_path, true));
        }
        if file.status == Delta::Deleted {
            return Ok(());
        }
        let moved = if is_moved {
            None
        } else {
            other.moved_path(&file.old_path)
        };
        let paths = [Some(file.path.clone()), moved];
        let there = paths
            .into_iter()
            .flatten()
            .find_map(|path| Some((find_leaf(&self.result, &path)?, path)));
        let Some((leaf, path)) = there else {
            lost.push(as_a_whole(&file.path, false));
            return Ok(());
        };
        let is_clean = !self.conflicts.contains(&*path.to_string_lossy())
            && find_leaf(&self.preview, &path).is_some_and(|clean| clean == leaf);
        if leaf == file.new || is_clean {
            return Ok(());
        }
        let is_mode_lost =
            file.status != Delta::Added && file.new.mode != file.old.mode && leaf.mode != file.new.mode;
        if is_mode_lost {
            lost.push(as_a_whole(&file.path, false));
        }
        if file.new.id == file.old.id {
            return Ok(());
        }
        let Some(hunks) = side.hunks(index)?.filter(|_| leaf.id != file.new.id) else {
            // Content without lines must be the side's own.
            if leaf.id != file.new.id && !is_mode_lost {
                lost.push(as_a_whole(&file.path, false));
            }
            return Ok(());
        };
        compared.insert(path.clone());
        let counts = self.count_lines((side, other), &file, &path)?;
        let others = other.hunks_of(&file.old_path)?;
        let shared = SharedLines::of(&hunks, &others);
        for hunk in &hunks {
            let is_removal = hunk.added.is_empty();
            let lines = if is_removal {
                counts.returned_lines(&hunk.removed, &shared)
            } else {
                counts.missing_lines(&hunk.added, &shared)
            };
            if !lines.is_empty() {
                lost.push(LostHunk {
                    lines: lines.into_iter().take(LostHunk::LINES).map(show_line).collect(),
                    ..as_a_whole(&file.path, is_removal)
                });
            }
        }
        Ok(())
    }

    fn count_lines(
        &self,
        (side, other): (&SideChange<'_>, &SideChange<'_>),
        file: &SideFile,
        path: &Path,
    ) -> Result<LineCounts, Error> {
        let other_path = other.moved_path(&file.old_path);
        let other_path = other_path.as_deref().unwrap_or(&file.old_path);
        let count = |tree: &Tree<'_>, path: &Path| {
            let text = self.repository.read_text(tree, path)?;
            Ok::<_, Error>(count_text(&text))
        };
        Ok(LineCounts {
            before: count(&self.before, &file.old_path)?,
            side: count(side.tree, &file.path)?,
            other: count(other.tree, other_path)?,
            result: count(&self.result, path)?,
        })
    }
}

/// Number of each line, without white space around it.
type LineCount = HashMap<Vec<u8>, i64>;

/// Lines of one file in all versions.
struct LineCounts {
    before: LineCount,
    side: LineCount,
    other: LineCount,
    result: LineCount,
}

/// Lines that touching hunks of both sides have in common: the result needs them once.
#[derive(Default)]
struct SharedLines {
    added: LineCount,
    removed: LineCount,
}

impl SharedLines {
    /// Hunks of one file do not overlap and are in order, so those that touch a hunk follow each other. Their lines are
    /// counted once: one side may have rewritten the whole file, and the other one thousands of places in it.
    fn of(hunks: &[SideHunk], others: &[SideHunk]) -> Self {
        let others: Vec<(&SideHunk, HunkCounts<'_>)> = others
            .iter()
            .map(|other| (other, HunkCounts::of(other)))
            .collect();
        let mut shared = Self::default();
        for hunk in hunks {
            let counts = HunkCounts::of(hunk);
            let first = others.partition_point(|(other, _)| other.old.1 < hunk.old.0);
            let touching = others.iter().skip(first);
            for (_, other) in touching.take_while(|(other, _)| hunk.touches(other)) {
                add_common(&mut shared.added, &counts.added, &other.added);
                add_common(&mut shared.removed, &counts.removed, &other.removed);
            }
        }
        shared
    }
}

/// Number of each line of a hunk.
struct HunkCounts<'a> {
    added: HashMap<&'a [u8], i64>,
    removed: HashMap<&'a [u8], i64>,
}

impl<'a> HunkCounts<'a> {
    fn of(hunk: &'a SideHunk) -> Self {
        Self {
            added: count_list(&hunk.added),
            removed: count_list(&hunk.removed),
        }
    }
}

impl LineCounts {
    /// Returns how often the result should have a line if it keeps the changes of both sides.
    fn wanted(&self, line: &[u8], shared: &SharedLines) -> i64 {
        let count = |of: &LineCount| of.get(line).copied().unwrap_or(0);
        count(&self.side) + count(&self.other) - count(&self.before) - count(&shared.added)
            + count(&shared.removed)
    }

    fn missing_lines<'a>(&self, added: &'a [Vec<u8>], shared: &SharedLines) -> Vec<&'a [u8]> {
        let is_missing = |line: &&[u8]| {
            let there = self.result.get(*line).copied().unwrap_or(0);
            there < self.wanted(line, shared).max(1)
        };
        added.iter().map(Vec::as_slice).filter(is_missing).collect()
    }

    /// Returns the removed lines if the result has all of them again.
    fn returned_lines<'a>(&self, removed: &'a [Vec<u8>], shared: &SharedLines) -> Vec<&'a [u8]> {
        let count = |of: &LineCount, line: &[u8]| of.get(line).copied().unwrap_or(0);
        let is_gone = |line: &&[u8]| count(&self.side, line) < count(&self.before, line);
        let gone: Vec<&[u8]> = removed.iter().map(Vec::as_slice).filter(is_gone).collect();
        let is_back = |line: &&[u8]| count(&self.result, line) > self.wanted(line, shared).max(0);
        if gone.iter().all(is_back) {
            gone
        } else {
            Vec::new()
        }
    }
}

fn add_common(to: &mut LineCount, one: &HashMap<&[u8], i64>, other: &HashMap<&[u8], i64>) {
    let (few, many) = if one.len() <= other.len() {
        (one, other)
    } else {
        (other, one)
    };
    for (line, count) in few {
        let common = many.get(line).copied().unwrap_or(0).min(*count);
        if common > 0 {
            *to.entry(line.to_vec()).or_default() += common;
        }
    }
}

fn count_list(lines: &[Vec<u8>]) -> HashMap<&[u8], i64> {
    let mut counts = HashMap::new();
    for line in lines {
        *counts.entry(line.as_slice()).or_default() += 1;
    }
    counts
}

fn count_text(text: &[u8]) -> LineCount {
    let mut counts = LineCount::new();
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    for line in lines.filter(|line| !line.is_empty()) {
        *counts.entry(line.to_vec()).or_default() += 1;
    }
    counts
}

/// Returns content and mode of a path; `None` for a missing path and for a folder.
fn find_leaf(tree: &Tree<'_>, path: &Path) -> Option<TreeLeaf> {
    let entry = tree.get_path(path).ok()?;
    (entry.kind() != Some(git2::ObjectType::Tree)).then(|| TreeLeaf {
        id: entry.id(),
        mode: entry.filemode(),
    })
}

fn show_line(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    text.chars().take(LostHunk::LINE_CHARS).collect()
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;

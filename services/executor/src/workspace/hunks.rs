//! Hunks of a change in a deterministic order, and trees with some of them reverted.

use std::{cmp::Reverse, ops::Range, path::PathBuf};

use git2::{Delta, DiffOptions, Oid, Patch};

use super::{
    WorkspaceError,
    tracked_files::{TreeUpdate, find_tracked_file},
};
use crate::integrity::{LinePart, divide_lines};

/// Limit in bytes: larger files have no hunks.
const MAX_FILE_BYTES: i64 = 1 << 20;
/// Limit of hunks.
pub(crate) const MAX_HUNKS: usize = 500;
/// Changes of the same part with at most this many unchanged lines between them are one hunk, as in a diff with
/// three lines of context. Without this, a change of a few places would reach the limits on hunks.
const NEAR_LINES: usize = 6;

/// Hunk between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeHunk {
    pub(crate) path: PathBuf,
    /// First changed line in the newer file, from 1; 0 when the file is removed.
    pub(crate) line: u32,
    /// Number of added and removed lines.
    pub(crate) lines: u32,
    /// Line numbers of added lines in the newer file, and of removed lines in the older file.
    pub(crate) added: Vec<usize>,
    pub(crate) removed: Vec<usize>,
    /// Lines of the older file that a revert puts in the place of those of the newer file, from 0. They include
    /// the unchanged lines between joined changes.
    old: Range<usize>,
    new: Range<usize>,
}

impl TreeHunk {
    /// Order in which the hunks of a file are reverted. Pieces of one change may begin at the same line; then
    /// the one that follows in the older file is last.
    const fn revert_order(&self) -> Reverse<(usize, usize, usize)> {
        Reverse((self.new.start, self.new.end, self.old.start))
    }
}

/// Lines that a change replaces, in both versions and without context, from 0.
struct LineChange {
    part: LinePart,
    old: Range<usize>,
    new: Range<usize>,
    added: Vec<usize>,
    removed: Vec<usize>,
}

impl LineChange {
    fn new(part: LinePart, old: Range<usize>, new: Range<usize>) -> Self {
        let numbers = |lines: &Range<usize>| -> Vec<usize> { lines.clone().map(|line| line + 1).collect() };
        Self {
            part,
            added: numbers(&new),
            removed: numbers(&old),
            old,
            new,
        }
    }

    /// Returns true when the next change belongs to the same hunk.
    fn continues_with(&self, next: &Self) -> bool {
        let is_same =
            self.part == next.part || self.part == LinePart::Neutral || next.part == LinePart::Neutral;
        is_same && next.new.start.saturating_sub(self.new.end) <= NEAR_LINES
    }

    fn join(&mut self, next: Self) {
        if self.part == LinePart::Neutral {
            self.part = next.part;
        }
        self.old.end = next.old.end;
        self.new.end = next.new.end;
        self.added.extend(next.added);
        self.removed.extend(next.removed);
    }

    fn into_hunk(self, path: PathBuf, is_gone: bool) -> TreeHunk {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        TreeHunk {
            path,
            line: if is_gone { 0 } else { count(self.new.start + 1) },
            lines: count(self.added.len() + self.removed.len()),
            added: self.added,
            removed: self.removed,
            old: self.old,
            new: self.new,
        }
    }
}

/// Returns the hunks of all text files, at most [`MAX_HUNKS`].
///
/// A hunk of a changed file contains lines of tests or lines of the product. It contains both only where
/// [`divide_change`] keeps a change whole.
pub(super) fn list_hunks(
    git: &git2::Repository,
    base: Oid,
    head: Oid,
) -> Result<Vec<TreeHunk>, WorkspaceError> {
    let (base, head) = (git.find_tree(base)?, git.find_tree(head)?);
    let diff = git.diff_tree_to_tree(Some(&base), Some(&head), Some(&mut build_diff_options()))?;
    let mut found = Vec::new();
    for (number, delta) in diff.deltas().enumerate() {
        let path = delta.new_file().path().or_else(|| delta.old_file().path());
        let (Some(path), Some(patch)) = (path, Patch::from_diff(&diff, number)?) else {
            continue;
        };
        // A revert of one hunk of a new or removed file restores the whole file, so it has only one.
        let changes = if matches!(delta.status(), Delta::Added | Delta::Deleted) || patch.num_hunks() == 0 {
            read_changes(&patch)?
        } else {
            let name = path.to_string_lossy();
            let old = PartedText::read(git, delta.old_file().id(), &name);
            let new = PartedText::read(git, delta.new_file().id(), &name);
            compare_parts(&patch, &old, &new)?
        };
        for change in changes {
            // Truncation keeps the order, so the numbers of the remaining hunks stay valid.
            if found.len() == MAX_HUNKS {
                return Ok(found);
            }
            let is_gone = delta.status() == Delta::Deleted;
            found.push(change.into_hunk(path.to_owned(), is_gone));
        }
    }
    Ok(found)
}

fn build_diff_options() -> DiffOptions {
    let mut options = DiffOptions::new();
    // Context would join a repair with the inline test below it into one hunk.
    options
        .context_lines(0)
        .interhunk_lines(0)
        .max_size(MAX_FILE_BYTES);
    options
}

/// Returns the changes of a file, divided between tests and product. `patch` is the difference of the texts.
fn compare_parts(
    patch: &Patch<'_>,
    old: &PartedText,
    new: &PartedText,
) -> Result<Vec<LineChange>, WorkspaceError> {
    let parts = || old.parts.iter().chain(&new.parts);
    let is_test = |part: &LinePart| *part == LinePart::Test;
    // Equal marks on all lines would not change the diff, as in a file with tests only.
    let is_mixed = parts().any(is_test) && !parts().all(is_test);
    let changes = if is_mixed {
        let (old, new) = (old.mark_lines(), new.mark_lines());
        let mut options = build_diff_options();
        // The marks can make a file larger than the limit, and git would treat it as binary.
        options.max_size(-1);
        let marked = Patch::from_buffers(&old, None, &new, None, Some(&mut options))?;
        read_changes(&marked)?
    } else {
        read_changes(patch)?
    };
    let divided = changes
        .into_iter()
        .flat_map(|change| divide_change(&change, &old.parts, &new.parts));
    Ok(join_near_changes(divided))
}

/// Text of a file with the part of each line.
struct PartedText {
    text: Vec<u8>,
    parts: Vec<LinePart>,
}

impl PartedText {
    /// Reads a file. The text of a submodule is empty, because its commit is in another repository.
    fn read(git: &git2::Repository, id: Oid, path: &str) -> Self {
        let text = git
            .find_blob(id)
            .map(|blob| blob.content().to_vec())
            .unwrap_or_default();
        let parts = divide_lines(path, &String::from_utf8_lossy(&text));
        Self { text, parts }
    }

    /// Returns the text with a mark of the part before each line.
    ///
    /// A diff of such texts never pairs a line of the product with an equal line of a test. Without the marks,
    /// the `}` at the end of a new test module would be the one that ended the file before, and a repair above it
    /// and the module would be one change.
    fn mark_lines(&self) -> Vec<u8> {
        let mut marked = Vec::with_capacity(self.text.len() + self.parts.len());
        for (at, line) in split_lines(&self.text).into_iter().enumerate() {
            marked.push(match self.parts.get(at) {
                Some(LinePart::Test) => b't',
                Some(LinePart::Neutral) => b'n',
                Some(LinePart::Product) | None => b'p',
            });
            marked.extend(line);
        }
        marked
    }
}

/// Returns the changes of a diff without context.
fn read_changes(patch: &Patch<'_>) -> Result<Vec<LineChange>, WorkspaceError> {
    // For an empty side, git gives the number of the line before.
    let range = |start: u32, count: u32| {
        let (start, count) = (start as usize, count as usize);
        let start = if count == 0 {
            start
        } else {
            start.saturating_sub(1)
        };
        start..start + count
    };
    let mut found = Vec::new();
    for number in 0..patch.num_hunks() {
        let (hunk, _) = patch.hunk(number)?;
        let old = range(hunk.old_start(), hunk.old_lines());
        let new = range(hunk.new_start(), hunk.new_lines());
        found.push(LineChange::new(LinePart::Product, old, new));
    }
    Ok(found)
}

/// Successive lines of one part.
struct PartRun {
    part: LinePart,
    lines: Range<usize>,
}

/// Divides lines where their part changes. Neutral lines belong to the lines before them, or to those after them
/// at the beginning.
fn list_runs(parts: &[LinePart], lines: Range<usize>) -> Vec<PartRun> {
    let mut runs: Vec<PartRun> = Vec::new();
    for at in lines {
        let part = parts.get(at).copied().unwrap_or(LinePart::Product);
        if let Some(run) = runs.last_mut()
            && (part == run.part || part == LinePart::Neutral || run.part == LinePart::Neutral)
        {
            run.lines.end = at + 1;
            if run.part == LinePart::Neutral {
                run.part = part;
            }
        } else {
            runs.push(PartRun {
                part,
                lines: at..at + 1,
            });
        }
    }
    runs
}

/// Divides a change between tests and product.
///
/// The pieces follow each other without a gap in both versions, so that each of them can be reverted alone. A
/// change whose versions have several parts in different orders stays whole.
fn divide_change(change: &LineChange, old: &[LinePart], new: &[LinePart]) -> Vec<LineChange> {
    let (old, new) = (
        list_runs(old, change.old.clone()),
        list_runs(new, change.new.clone()),
    );
    let has_same_order = old.len() == new.len() && old.iter().zip(&new).all(|(a, b)| a.part == b.part);
    if has_same_order {
        let pairs = old.iter().zip(&new);
        return pairs
            .map(|(old, new)| LineChange::new(new.part, old.lines.clone(), new.lines.clone()))
            .collect();
    }
    if old.len() <= 1 {
        let pieces = place_beside(old.first(), &new, &change.old, change.new.start).into_iter();
        return pieces
            .map(|piece| LineChange::new(piece.part, piece.single, piece.many))
            .collect();
    }
    if new.len() <= 1 {
        let pieces = place_beside(new.first(), &old, &change.new, change.old.start).into_iter();
        return pieces
            .map(|piece| LineChange::new(piece.part, piece.many, piece.single))
            .collect();
    }
    vec![LineChange::new(
        LinePart::Product,
        change.old.clone(),
        change.new.clone(),
    )]
}

/// Piece of a change of which one version has at most one part.
struct ChangePiece {
    part: LinePart,
    /// Lines of the version with one part.
    single: Range<usize>,
    /// Lines of the other version.
    many: Range<usize>,
}

/// Pairs the only run of one version with the run of the same part in the other version. Without such a run it
/// is a piece of its own before the others.
fn place_beside(
    only: Option<&PartRun>,
    runs: &[PartRun],
    whole: &Range<usize>,
    many_start: usize,
) -> Vec<ChangePiece> {
    let partner = only.and_then(|only| {
        runs.iter()
            .position(|run| run.part == only.part || only.part == LinePart::Neutral)
    });
    let mut pieces = Vec::new();
    if let (Some(only), None) = (only, partner) {
        pieces.push(ChangePiece {
            part: only.part,
            single: only.lines.clone(),
            many: many_start..many_start,
        });
    }
    for (at, run) in runs.iter().enumerate() {
        let single = match partner {
            Some(partner) if at < partner => whole.start..whole.start,
            Some(partner) if at == partner => whole.clone(),
            Some(_) | None => whole.end..whole.end,
        };
        pieces.push(ChangePiece {
            part: run.part,
            single,
            many: run.lines.clone(),
        });
    }
    pieces
}

fn join_near_changes(changes: impl Iterator<Item = LineChange>) -> Vec<LineChange> {
    let mut joined: Vec<LineChange> = Vec::new();
    for change in changes {
        match joined.last_mut() {
            Some(last) if last.continues_with(&change) => last.join(change),
            Some(_) | None => joined.push(change),
        }
    }
    joined
}

/// Returns the head's tree with these hunks reverted.
pub(super) fn revert_hunks(
    git: &git2::Repository,
    base: Oid,
    head: Oid,
    taken: &[TreeHunk],
) -> Result<Oid, WorkspaceError> {
    let (base, current) = (git.find_tree(base)?, git.find_tree(head)?);
    let mut update = TreeUpdate::default();
    // The last hunk of a file is reverted first, so that the line numbers of the others stay valid.
    let mut taken: Vec<&TreeHunk> = taken.iter().collect();
    taken.sort_by(|a, b| (&a.path, a.revert_order()).cmp(&(&b.path, b.revert_order())));
    // A caller may name a hunk twice, and a second revert would change other lines.
    taken.dedup();
    for hunks in taken.chunk_by(|a, b| a.path == b.path) {
        let Some(path) = hunks.first().map(|hunk| &hunk.path) else {
            continue;
        };
        let before = find_tracked_file(&base, path)?;
        match (before, find_tracked_file(&current, path)?) {
            // The lines of a link or of a submodule's commit are not those of a file at the same path.
            (Some((before, old_mode)), Some((now, mode))) if is_regular(old_mode) && is_regular(mode) => {
                let (old, new) = (git.find_blob(before)?, git.find_blob(now)?);
                let content = hunks.iter().fold(new.content().to_vec(), |content, hunk| {
                    revert_hunk(old.content(), &content, hunk)
                });
                update.set(path, Some((git.blob(&content)?, mode)));
            }
            (before, _) => update.set(path, before),
        }
    }
    update.write(git, Some(head))
}

/// Returns true for the mode of a file that is neither a link nor a submodule.
const fn is_regular(mode: i32) -> bool {
    mode & 0o170_000 == 0o100_000
}

fn revert_hunk(old: &[u8], new: &[u8], hunk: &TreeHunk) -> Vec<u8> {
    let (old, new) = (split_lines(old), split_lines(new));
    let part = |lines: &[&[u8]], range: Range<usize>| {
        let end = range.end.min(lines.len());
        lines[range.start.min(end)..end].concat()
    };
    let mut whole = part(&new, 0..hunk.new.start);
    append_lines(&mut whole, &part(&old, hunk.old.clone()));
    append_lines(&mut whole, &part(&new, hunk.new.end..new.len()));
    whole
}

/// Appends whole lines. The last line of one version may have no line end, and is within the text here.
fn append_lines(text: &mut Vec<u8>, lines: &[u8]) {
    if !lines.is_empty() && text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    text.extend(lines);
}

fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        integrity::is_test_hunk,
        workspace::{ChangedFile, tracked_files::write_tree_of},
    };

    fn create_repository() -> (tempfile::TempDir, git2::Repository) {
        let folder = tempfile::TempDir::new().unwrap();
        let git = git2::Repository::init_bare(folder.path()).unwrap();
        (folder, git)
    }

    fn write_file_tree(git: &git2::Repository, files: &[(&str, &str)]) -> Oid {
        let files = files
            .iter()
            .map(|(path, text)| (path.into(), (git.blob(text.as_bytes()).unwrap(), 0o100_644)))
            .collect();
        write_tree_of(git, &files).unwrap()
    }

    fn read_tree_file(git: &git2::Repository, tree: Oid, path: &str) -> Option<String> {
        let entry = git.find_tree(tree).unwrap().get_path(path.as_ref()).ok()?;
        let blob = git.find_blob(entry.id()).unwrap();
        Some(String::from_utf8(blob.content().to_vec()).unwrap())
    }

    #[test]
    fn single_hunk_revert_keeps_others() {
        let (_folder, git) = create_repository();
        let lines = |changed: &[usize]| -> String {
            (1..=40)
                .map(|n| {
                    if changed.contains(&n) {
                        format!("new {n}\n")
                    } else {
                        format!("line {n}\n")
                    }
                })
                .collect()
        };
        let base = write_file_tree(&git, &[("a", &lines(&[])), ("gone", "g\n")]);
        let head = write_file_tree(&git, &[("a", &lines(&[3, 30])), ("sub/made", "m\n")]);
        let found = list_hunks(&git, base, head).unwrap();
        let named: Vec<_> = found
            .iter()
            .map(|hunk| (hunk.path.to_str().unwrap(), hunk.line, hunk.lines))
            .collect();
        assert_eq!(
            named,
            [("a", 3, 2), ("a", 30, 2), ("gone", 0, 1), ("sub/made", 1, 1)]
        );
        let without_all = |taken: &[TreeHunk]| revert_hunks(&git, base, head, taken).unwrap();
        let without = |n: usize| without_all(std::slice::from_ref(&found[n]));
        assert_eq!(read_tree_file(&git, without(0), "a").unwrap(), lines(&[30]));
        assert_eq!(read_tree_file(&git, without(1), "a").unwrap(), lines(&[3]));
        assert_eq!(read_tree_file(&git, without(2), "gone").unwrap(), "g\n");
        assert_eq!(read_tree_file(&git, without(3), "sub/made"), None);
        assert_eq!(read_tree_file(&git, without(3), "a").unwrap(), lines(&[3, 30]));
        assert_eq!(
            read_tree_file(&git, without_all(&found[..2]), "a").unwrap(),
            lines(&[])
        );
        assert_eq!(without_all(&found), base, "in whatever order");
    }

    #[test]
    fn links_and_submodules_are_reverted_whole() {
        let (_folder, git) = create_repository();
        let blob = |text: &str| git.blob(text.as_bytes()).unwrap();
        let commit = |digit: &str| Oid::from_str(&digit.repeat(40)).unwrap();
        let (file, link, module) = (0o100_644, 0o120_000, 0o160_000);
        let build = |entries: [(&str, Oid, i32); 5]| {
            let files = entries
                .into_iter()
                .map(|(path, id, mode)| (path.into(), (id, mode)))
                .collect();
            write_tree_of(&git, &files).unwrap()
        };
        let base = build([
            ("file", blob("a\n"), file),
            ("link", blob("AGENTS.md"), link),
            ("module", commit("1"), module),
            ("moved", blob("a"), link),
            ("replaced", commit("1"), module),
        ]);
        let head = build([
            ("file", blob("AGENTS.md"), link),
            ("link", blob("# Agents\n"), file),
            ("module", commit("2"), module),
            ("moved", blob("b"), link),
            ("replaced", blob("x\n"), file),
        ]);
        let found = list_hunks(&git, base, head).unwrap();
        assert_eq!(revert_hunks(&git, base, head, &found).unwrap(), base);
        let before = git.find_tree(base).unwrap();
        for hunk in &found {
            let reverted = revert_hunks(&git, base, head, std::slice::from_ref(hunk)).unwrap();
            let reverted = git.find_tree(reverted).unwrap();
            let find = |tree: &git2::Tree<'_>| find_tracked_file(tree, &hunk.path).unwrap();
            assert_eq!(find(&reverted), find(&before), "{hunk:?}");
        }
    }

    /// Hunks of a change of one file, each with true when it is a test.
    fn list_parts(path: &str, before: &str, after: &str) -> Vec<(TreeHunk, bool)> {
        let (_folder, git) = create_repository();
        let base = write_file_tree(&git, &[(path, before)]);
        let head = write_file_tree(&git, &[(path, after)]);
        let file = ChangedFile::sample(path, Some(before), Some(after));
        let found = list_hunks(&git, base, head).unwrap();
        let parts = found.into_iter().map(|hunk| {
            let is_test = is_test_hunk(Some(&file), &hunk);
            (hunk, is_test)
        });
        parts.collect()
    }

    fn list_kinds(path: &str, before: &str, after: &str) -> Vec<(u32, bool)> {
        let parts = list_parts(path, before, after);
        parts
            .iter()
            .map(|(hunk, is_test)| (hunk.line, *is_test))
            .collect()
    }

    const FIRST_TEST: &str = "\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds_up() {\n        assert_eq!(super::total(), 3);\n    }\n}\n";

    #[test]
    fn repair_and_inline_test_are_two_hunks() {
        let product = |value: u32| format!("pub fn total() -> u32 {{\n    {value}\n}}\n");
        let with_test = |value: u32| product(value) + FIRST_TEST;
        let path = "src/lib.rs";
        // The first test of a file.
        assert_eq!(
            list_kinds(path, &product(2), &with_test(3)),
            [(2, false), (4, true)]
        );
        // A weakened test beside a change of the product.
        let weak = with_test(4).replace("assert_eq!(super::total(), 3)", "assert!(super::total() > 0)");
        assert_eq!(list_kinds(path, &with_test(3), &weak), [(2, false), (9, true)]);
        // A change without any unchanged line between product and test.
        let line = |value: u32| format!("pub fn total() -> u32 {{ {value} }}\n");
        let after = line(3) + FIRST_TEST;
        assert_eq!(list_kinds(path, &line(2), &after), [(1, false), (3, true)]);
        assert_eq!(list_kinds(path, &after, &line(2)), [(1, false), (2, true)]);
        let helper = product(2) + "\nfn half() {}\n" + FIRST_TEST;
        assert_eq!(list_kinds(path, &product(2), &helper), [(4, false), (7, true)]);
    }

    #[test]
    fn large_file_with_inline_test_has_hunks() {
        // The file is below the limit, and above it with one mark per line.
        let text = |value: u32| {
            format!(
                "const A: u32 = {value};\n{}{FIRST_TEST}",
                "b();\n".repeat(200_000)
            )
        };
        assert!(text(2).len() < 1 << 20 && text(2).len() + 200_000 > 1 << 20);
        assert_eq!(list_kinds("src/lib.rs", &text(2), &text(3)), [(1, false)]);
    }

    #[test]
    fn example_beside_the_code_is_its_own_hunk() {
        let rust = |value: u32| {
            format!(
                "/// Adds.\n/// ```\n/// assert_eq!(total(), {value});\n/// ```\npub fn total() -> u32 {{\n    {value}\n}}\n"
            )
        };
        assert_eq!(
            list_kinds("src/lib.rs", &rust(2), &rust(3)),
            [(3, true), (6, false)]
        );
        let python = |value: u32| {
            format!(
                "def total():\n    \"\"\"Adds.\n\n    >>> total()\n    {value}\n    \"\"\"\n    return {value}\n"
            )
        };
        assert_eq!(
            list_kinds("shop/cart.py", &python(2), &python(3)),
            [(5, true), (7, false)]
        );
    }

    #[test]
    fn each_part_of_a_change_is_reverted_alone() {
        let (_folder, git) = create_repository();
        // Without a line end, the last line of the product would run into the test.
        for end in ["\n", ""] {
            let before = format!("pub fn total() -> u32 {{ 2 }}{end}");
            let fixed = "pub fn total() -> u32 { 3 }\n".to_owned();
            let base = write_file_tree(&git, &[("src/lib.rs", &before)]);
            let head = write_file_tree(&git, &[("src/lib.rs", &(fixed.clone() + FIRST_TEST))]);
            let found = list_hunks(&git, base, head).unwrap();
            let without = |taken: &[TreeHunk]| {
                let tree = revert_hunks(&git, base, head, taken).unwrap();
                read_tree_file(&git, tree, "src/lib.rs").unwrap()
            };
            assert_eq!(
                without(&found[..1]),
                format!("{}\n{}", before.trim_end(), FIRST_TEST.trim_start())
            );
            assert_eq!(without(&found[1..]), fixed.clone() + "\n");
            assert_eq!(without(&found), before);
        }
    }

    #[test]
    fn near_changes_of_product_stay_one_hunk() {
        let lines = |changed: &[usize]| -> String {
            let text = |n| if changed.contains(&n) { "new" } else { "old" };
            (1..=40).map(|n| format!("let {}{n} = 1;\n", text(n))).collect()
        };
        let found = list_parts("src/lib.rs", &lines(&[]), &lines(&[3, 10, 18]));
        let found: Vec<_> = found
            .iter()
            .map(|(hunk, _)| (hunk.line, hunk.lines, hunk.added.len()))
            .collect();
        assert_eq!(found, [(3, 4, 2), (18, 2, 1)]);
    }

    proptest! {
        #[test]
        fn reverting_hunks_in_turn_restores_file(
            old in proptest::collection::vec("[abc]", 0..30),
            new in proptest::collection::vec("[abc]", 0..30),
            ends in any::<bool>(),
        ) {
            let (_folder, git) = create_repository();
            let end = if ends { "\n" } else { "" };
            let join = |lines: &[String]| format!("{}{end}", lines.join("\n"));
            let (old, new) = (join(&old), join(&new));
            let (base, mut now) = (write_file_tree(&git, &[("f", &old)]), write_file_tree(&git, &[("f", &new)]));
            while let Some(last) = list_hunks(&git, base, now).unwrap().pop() {
                let next = revert_hunks(&git, base, now, &[last]).unwrap();
                prop_assert_ne!(next, now);
                now = next;
            }
            prop_assert_eq!(read_tree_file(&git, now, "f").unwrap(), old);
        }

        #[test]
        fn reverting_all_hunks_restores_file(
            old in proptest::collection::vec("[abc]", 0..40),
            new in proptest::collection::vec("[abc]", 0..40),
        ) {
            let (_folder, git) = create_repository();
            let (old, new) = (old.join("\n"), new.join("\n"));
            let (base, head) = (write_file_tree(&git, &[("f", &old)]), write_file_tree(&git, &[("f", &new)]));
            let all = list_hunks(&git, base, head).unwrap();
            prop_assert_eq!(revert_hunks(&git, base, head, &all).unwrap(), base);
        }

        #[test]
        fn reverting_parts_restores_file(
            old in proptest::collection::vec("fn a\\(\\) \\{\\}|#\\[test\\]|fn b\\(\\) \\{\\}|// c|/// ```|", 0..30),
            new in proptest::collection::vec("fn a\\(\\) \\{\\}|#\\[test\\]|fn b\\(\\) \\{\\}|// c|/// ```|", 0..30),
        ) {
            let (_folder, git) = create_repository();
            let (old, new) = (old.join("\n"), new.join("\n"));
            let path = "src/lib.rs";
            let (base, head) = (write_file_tree(&git, &[(path, &old)]), write_file_tree(&git, &[(path, &new)]));
            let all = list_hunks(&git, base, head).unwrap();
            prop_assert_eq!(revert_hunks(&git, base, head, &all).unwrap(), base);
            // The last ones first, one after another, as the numbers of the others stay valid.
            let mut now = head;
            for hunk in all.iter().rev() {
                now = revert_hunks(&git, base, now, std::slice::from_ref(hunk)).unwrap();
            }
            prop_assert_eq!(now, base);
        }
    }
}

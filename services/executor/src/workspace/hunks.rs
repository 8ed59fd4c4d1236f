//! Hunks of a change in a deterministic order, and trees with some of them reverted.

use std::path::PathBuf;

use git2::{Delta, DiffOptions, Oid, Patch};

use super::{
    WorkspaceError,
    scan::{TrackedFiles, list_tracked_files, write_tree_of},
};

/// Limit in bytes: larger files have no hunks.
const MAX_FILE_BYTES: i64 = 1 << 20;
/// Limit of hunks.
pub(crate) const MAX_HUNKS: usize = 500;

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
    /// First line and number of lines in the older file, including context.
    old: (usize, usize),
    new: (usize, usize),
}

/// Returns the hunks of all text files, at most [`MAX_HUNKS`].
pub(super) fn list_hunks(
    git: &git2::Repository,
    base: Oid,
    head: Oid,
) -> Result<Vec<TreeHunk>, WorkspaceError> {
    let (base, head) = (git.find_tree(base)?, git.find_tree(head)?);
    let mut options = DiffOptions::new();
    options.context_lines(3).max_size(MAX_FILE_BYTES);
    let diff = git.diff_tree_to_tree(Some(&base), Some(&head), Some(&mut options))?;
    let mut found = Vec::new();
    for (number, delta) in diff.deltas().enumerate() {
        let path = delta.new_file().path().or_else(|| delta.old_file().path());
        let (Some(path), Some(mut patch)) = (path, Patch::from_diff(&diff, number)?) else {
            continue;
        };
        for hunk in 0..patch.num_hunks() {
            // Truncation keeps the order, so the numbers of the remaining hunks stay valid.
            if found.len() == MAX_HUNKS {
                return Ok(found);
            }
            let is_gone = delta.status() == Delta::Deleted;
            found.push(read_hunk(&mut patch, hunk, path.to_owned(), is_gone)?);
        }
    }
    Ok(found)
}

fn read_hunk(
    patch: &mut Patch<'_>,
    number: usize,
    path: PathBuf,
    is_gone: bool,
) -> Result<TreeHunk, WorkspaceError> {
    let (hunk, count) = patch.hunk(number)?;
    let (old, new) = (
        (hunk.old_start() as usize, hunk.old_lines() as usize),
        (hunk.new_start() as usize, hunk.new_lines() as usize),
    );
    let (mut line, mut lines, mut at) = (0, 0, hunk.new_start());
    let (mut added, mut removed) = (Vec::new(), Vec::new());
    for place in 0..count {
        let found = patch.line_in_hunk(number, place)?;
        match found.origin() {
            '+' => added.extend(found.new_lineno().map(|number| number as usize)),
            '-' => removed.extend(found.old_lineno().map(|number| number as usize)),
            _ => {}
        }
        match found.origin() {
            '+' | '-' => {
                lines += 1;
                if line == 0 {
                    line = at.max(1);
                }
            }
            _ => {}
        }
        at = found.new_lineno().map_or(at, |number| number + 1);
    }
    Ok(TreeHunk {
        path,
        line: if is_gone { 0 } else { line },
        lines,
        added,
        removed,
        old,
        new,
    })
}

/// Returns the head's tree with these hunks reverted.
pub(super) fn revert_hunks(
    git: &git2::Repository,
    base: Oid,
    head: Oid,
    taken: &[TreeHunk],
) -> Result<Oid, WorkspaceError> {
    let files =
        |tree| -> Result<TrackedFiles, WorkspaceError> { list_tracked_files(git, &git.find_tree(tree)?) };
    let (base, mut files) = (files(base)?, files(head)?);
    // The last hunk of a file is reverted first, so that the line numbers of the others stay valid.
    let mut taken: Vec<&TreeHunk> = taken.iter().collect();
    taken.sort_by(|a, b| (&a.path, b.new.0).cmp(&(&b.path, a.new.0)));
    // A caller may name a hunk twice, and a second revert would change other lines.
    taken.dedup();
    for hunk in taken {
        let before = base.get(&hunk.path).copied();
        match (before, files.get(&hunk.path).copied()) {
            (Some(before), Some((now, mode))) => {
                let (old, new) = (git.find_blob(before.0)?, git.find_blob(now)?);
                let content = revert_hunk(old.content(), new.content(), hunk);
                files.insert(hunk.path.clone(), (git.blob(&content)?, mode));
            }
            (Some(before), None) => {
                files.insert(hunk.path.clone(), before);
            }
            (None, _) => {
                files.remove(&hunk.path);
            }
        }
    }
    write_tree_of(git, &files)
}

fn revert_hunk(old: &[u8], new: &[u8], hunk: &TreeHunk) -> Vec<u8> {
    let (old, new) = (split_lines(old), split_lines(new));
    // For an empty side, git gives the number of the line before.
    let range = |(start, count): (usize, usize)| {
        let start = if count == 0 {
            start
        } else {
            start.saturating_sub(1)
        };
        (start, start + count)
    };
    let ((old_start, old_end), (new_start, new_end)) = (range(hunk.old), range(hunk.new));
    let part = |lines: &[&[u8]], from: usize, to: usize| {
        let to = to.min(lines.len());
        lines[from.min(to)..to].concat()
    };
    let mut whole = part(&new, 0, new_start);
    whole.extend(part(&old, old_start, old_end));
    whole.extend(part(&new, new_end, new.len()));
    whole
}

fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
    }
}

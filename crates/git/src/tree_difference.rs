//! Differences of two trees. Folders that both trees contain are not read, whereas libgit2 reads every folder of both.

use std::{collections::BTreeMap, ffi::OsStr, os::unix::ffi::OsStrExt as _, path::PathBuf};

use git2::{ObjectType, Oid, Repository, Tree, TreeEntry};

use crate::Error;

/// Path whose file, symbolic link or submodule differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeDifference {
    /// Path in both trees.
    pub path: PathBuf,
    /// Object id and mode in the old tree; absent for a new path.
    pub old: Option<(Oid, i32)>,
    /// Object id and mode in the new tree; absent for a removed path.
    pub new: Option<(Oid, i32)>,
}

/// Lists the differences of two trees by path. An absent tree is an empty one.
///
/// # Errors
/// [`Error::Missing`] when the repository lacks a tree.
pub fn list_tree_differences(
    git: &Repository,
    old: Option<Oid>,
    new: Option<Oid>,
) -> Result<Vec<TreeDifference>, Error> {
    let mut differences = Vec::new();
    let mut folders = vec![(PathBuf::new(), old, new)];
    while let Some((folder, old, new)) = folders.pop() {
        if old == new {
            continue;
        }
        let old = old.map(|id| git.find_tree(id)).transpose()?;
        let new = new.map(|id| git.find_tree(id)).transpose()?;
        let (old, new) = (list_entries(old.as_ref()), list_entries(new.as_ref()));
        let mut pairs: BTreeMap<&[u8], (Option<&TreeEntry<'_>>, Option<&TreeEntry<'_>>)> = BTreeMap::new();
        for entry in &old {
            pairs.entry(entry.name_bytes()).or_default().0 = Some(entry);
        }
        for entry in &new {
            pairs.entry(entry.name_bytes()).or_default().1 = Some(entry);
        }
        for (name, (old, new)) in pairs {
            let is_same = |(old, new): (&TreeEntry<'_>, &TreeEntry<'_>)| {
                old.id() == new.id() && old.filemode_raw() == new.filemode_raw()
            };
            if old.zip(new).is_some_and(is_same) {
                continue;
            }
            let path = folder.join(OsStr::from_bytes(name));
            folders.push((path.clone(), find_folder(old), find_folder(new)));
            let (old, new) = (find_leaf(old), find_leaf(new));
            if old.is_some() || new.is_some() {
                differences.push(TreeDifference { path, old, new });
            }
        }
    }
    differences.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(differences)
}

fn list_entries<'t>(tree: Option<&'t Tree<'_>>) -> Vec<TreeEntry<'t>> {
    tree.into_iter().flat_map(|tree| tree.iter()).collect()
}

fn is_folder(entry: &TreeEntry<'_>) -> bool {
    entry.kind() == Some(ObjectType::Tree)
}

/// Returns the tree of an entry that is a folder.
fn find_folder(entry: Option<&TreeEntry<'_>>) -> Option<Oid> {
    Some(entry.filter(|entry| is_folder(entry))?.id())
}

/// Returns object id and mode of an entry that is not a folder.
fn find_leaf(entry: Option<&TreeEntry<'_>>) -> Option<(Oid, i32)> {
    let entry = entry.filter(|entry| !is_folder(entry))?;
    Some((entry.id(), entry.filemode()))
}

#[cfg(test)]
mod tests {
    use domain::CommitId;
    use git2::{Delta, DiffOptions, FileMode, build::TreeUpdateBuilder};

    use super::*;
    use crate::BareRepository;

    /// Repository for the trees of a test.
    struct TreeWorld {
        _folder: tempfile::TempDir,
        repository: BareRepository,
    }

    impl TreeWorld {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let repository = BareRepository::init_bare(&folder.path().join("a.git")).unwrap();
            Self {
                _folder: folder,
                repository,
            }
        }

        fn git(&self) -> &Repository {
            self.repository.objects()
        }

        fn write_blob(&self, text: &str) -> Oid {
            self.git().blob(text.as_bytes()).unwrap()
        }

        fn write_tree(&self, files: &[(&str, &str, FileMode)]) -> Oid {
            let git = self.git();
            let empty = git.treebuilder(None).unwrap().write().unwrap();
            let mut update = TreeUpdateBuilder::new();
            for (path, text, mode) in files {
                update.upsert(*path, self.write_blob(text), *mode);
            }
            let empty = git.find_tree(empty).unwrap();
            update.create_updated(git, &empty).unwrap()
        }

        /// Compares two trees by libgit2.
        fn compare(&self, old: Oid, new: Oid) -> Vec<TreeDifference> {
            let git = self.git();
            let (old, new) = (git.find_tree(old).unwrap(), git.find_tree(new).unwrap());
            let mut options = DiffOptions::new();
            options.include_typechange(true);
            let diff = git.diff_tree_to_tree(Some(&old), Some(&new), Some(&mut options));
            let leaf = |file: &git2::DiffFile<'_>| (file.id(), i32::from(file.mode()));
            let mut differences: Vec<TreeDifference> = diff
                .unwrap()
                .deltas()
                .map(|delta| TreeDifference {
                    path: delta.new_file().path().unwrap().to_owned(),
                    old: (delta.status() != Delta::Added).then(|| leaf(&delta.old_file())),
                    new: (delta.status() != Delta::Deleted).then(|| leaf(&delta.new_file())),
                })
                .collect();
            differences.sort_by(|one, other| one.path.cmp(&other.path));
            differences
        }
    }

    #[test]
    fn differences_equal_those_of_libgit2() {
        let world = TreeWorld::new();
        let (file, program) = (FileMode::Blob, FileMode::BlobExecutable);
        let trees = [
            world.write_tree(&[]),
            world.write_tree(&[("a", "1", file), ("b/c/d", "2", file), ("b/e", "3", file)]),
            // A changed content, a changed mode and a new folder.
            world.write_tree(&[
                ("a", "2", file),
                ("b/c/d", "2", program),
                ("b/e", "3", file),
                ("f/g", "4", file),
            ]),
            // A folder in the place of a file, the reverse, and a link in the place of a file.
            world.write_tree(&[("a/h", "1", file), ("b", "2", file), ("f/g", "a", FileMode::Link)]),
            // A submodule, and names around a slash in the order of git.
            world.write_tree(&[
                ("b", "1", FileMode::Commit),
                ("f", "4", file),
                ("f.x", "1", file),
                ("f-", "1", file),
            ]),
        ];
        for old in trees {
            for new in trees {
                let found = list_tree_differences(world.git(), Some(old), Some(new)).unwrap();
                assert_eq!(found, world.compare(old, new), "{old} {new}");
            }
        }
        let [empty, some, ..] = trees;
        let all = list_tree_differences(world.git(), None, Some(some)).unwrap();
        assert_eq!(all, world.compare(empty, some));
    }

    #[test]
    fn shared_folder_is_never_read() {
        let world = TreeWorld::new();
        let missing = Oid::from_bytes(&[7; 20]).unwrap();
        // Written as raw bytes, because the library refuses a folder without an object.
        let write = |text: &str| {
            let mut bytes = Vec::new();
            for (entry, id) in [("100644 a", world.write_blob(text)), ("40000 shared", missing)] {
                bytes.extend_from_slice(entry.as_bytes());
                bytes.push(0);
                bytes.extend_from_slice(id.as_bytes());
            }
            let odb = world.git().odb().unwrap();
            odb.write(ObjectType::Tree, &bytes).unwrap()
        };
        let (old, new) = (write("1"), write("2"));
        let found = list_tree_differences(world.git(), Some(old), Some(new)).unwrap();
        let paths: Vec<_> = found.iter().map(|difference| difference.path.as_path()).collect();
        assert_eq!(paths, ["a"].map(std::path::Path::new));
    }

    #[test]
    fn count_includes_removed_files() {
        let world = TreeWorld::new();
        let commit = |files: &[(&str, &str, FileMode)]| -> CommitId {
            let git = world.git();
            let tree = git.find_tree(world.write_tree(files)).unwrap();
            let who = git2::Signature::new("A", "a@acme.example", &git2::Time::new(1, 0)).unwrap();
            let id = git.commit(None, &who, &who, "x", &tree, &[]).unwrap();
            crate::convert_commit_id(id).unwrap()
        };
        let before = commit(&[("a", "1", FileMode::Blob), ("b/c", "1", FileMode::Blob)]);
        let after = commit(&[("a", "2", FileMode::Blob), ("d", "1", FileMode::Blob)]);
        let count = |one, other| world.repository.count_changed_files(one, other).unwrap();
        assert_eq!(count(&before, &after), 3);
        assert_eq!(count(&after, &after), 0);
    }
}

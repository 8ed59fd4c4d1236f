//! Files of a git tree, and new trees that differ from another one in few files.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use git2::{ErrorCode, ObjectType, Oid, Tree};

use super::WorkspaceError;

/// Mode of a folder in a tree.
const FOLDER: i32 = 0o040_000;

/// Object id and mode of a file in a tree.
pub(super) type TreeFile = (Oid, i32);

/// Files of a tree by path.
pub(super) type TrackedFiles = BTreeMap<PathBuf, TreeFile>;

pub(super) fn os_name(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

/// Lists all files of a tree, including links and submodules.
pub(super) fn list_tracked_files(git: &git2::Repository, tree: Oid) -> Result<TrackedFiles, WorkspaceError> {
    let mut files = TrackedFiles::new();
    let mut queue = vec![(PathBuf::new(), git.find_tree(tree)?)];
    while let Some((folder, tree)) = queue.pop() {
        for entry in &tree {
            let path = folder.join(os_name(entry.name_bytes()));
            if entry.kind() == Some(ObjectType::Tree) {
                queue.push((path, git.find_tree(entry.id())?));
            } else {
                files.insert(path, (entry.id(), entry.filemode()));
            }
        }
    }
    Ok(files)
}

/// Returns a file of a tree; `None` for a missing path and for a folder.
pub(super) fn find_tracked_file(tree: &Tree<'_>, path: &Path) -> Result<Option<TreeFile>, WorkspaceError> {
    match tree.get_path(path) {
        Ok(entry) if entry.kind() == Some(ObjectType::Tree) => Ok(None),
        Ok(entry) => Ok(Some((entry.id(), entry.filemode()))),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the tree of a folder; `None` for a missing path and for a file.
pub(super) fn find_folder_tree<'a>(
    git: &'a git2::Repository,
    tree: &Tree<'_>,
    folder: &Path,
) -> Result<Option<Tree<'a>>, WorkspaceError> {
    if folder.as_os_str().is_empty() {
        return Ok(Some(git.find_tree(tree.id())?));
    }
    match tree.get_path(folder) {
        Ok(entry) if entry.kind() == Some(ObjectType::Tree) => Ok(Some(git.find_tree(entry.id())?)),
        Ok(_) => Ok(None),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Lists the file at a path of a tree, or the files beneath it. The empty path is the whole tree.
pub(super) fn list_files_at(
    git: &git2::Repository,
    tree: &Tree<'_>,
    path: &Path,
) -> Result<TrackedFiles, WorkspaceError> {
    if let Some(folder) = find_folder_tree(git, tree, path)? {
        let files = list_tracked_files(git, folder.id())?.into_iter();
        return Ok(files.map(|(inner, file)| (path.join(inner), file)).collect());
    }
    let file = find_tracked_file(tree, path)?;
    Ok(file.map(|file| (path.to_owned(), file)).into_iter().collect())
}

/// Writes the tree of these files.
#[cfg(test)]
pub(super) fn write_tree_of(git: &git2::Repository, files: &TrackedFiles) -> Result<Oid, WorkspaceError> {
    let mut update = TreeUpdate::default();
    for (path, file) in files {
        update.set(path, Some(*file));
    }
    update.write(git, None)
}

/// Differences of a new tree from another one.
#[derive(Default)]
pub(super) struct TreeUpdate {
    /// Files of this folder: new ones and changed ones, and `None` for a removed one.
    files: BTreeMap<OsString, Option<TreeFile>>,
    folders: BTreeMap<OsString, TreeUpdate>,
}

impl TreeUpdate {
    /// Sets the file at a path; `None` removes it.
    pub(super) fn set(&mut self, path: &Path, file: Option<TreeFile>) {
        let mut node = self;
        for part in path.parent().into_iter().flat_map(Path::components) {
            node = node.folders.entry(part.as_os_str().to_owned()).or_default();
        }
        let name = path.file_name().unwrap_or_default().to_owned();
        node.files.insert(name, file);
    }

    /// Writes the new tree. Folders without a difference are not read.
    pub(super) fn write(&self, git: &git2::Repository, old: Option<Oid>) -> Result<Oid, WorkspaceError> {
        match self.write_folder(git, old)? {
            Some(tree) => Ok(tree),
            None => Ok(git.treebuilder(None)?.write()?),
        }
    }

    /// Writes the tree of a folder; `None` if it is empty.
    fn write_folder(&self, git: &git2::Repository, old: Option<Oid>) -> Result<Option<Oid>, WorkspaceError> {
        let old = old.map(|old| git.find_tree(old)).transpose()?;
        let mut builder = git.treebuilder(old.as_ref())?;
        let kind_of = |builder: &git2::TreeBuilder<'_>, name: &OsStr| {
            let entry = builder.get(name)?;
            Ok::<_, git2::Error>(entry.map(|entry| (entry.kind(), entry.id())))
        };
        for (name, file) in &self.files {
            match file {
                Some((id, mode)) => drop(builder.insert(name, *id, *mode)?),
                // A folder at the place of a removed file belongs to `folders`.
                None => match kind_of(&builder, name)? {
                    None | Some((Some(ObjectType::Tree), _)) => {}
                    Some(_) => builder.remove(name)?,
                },
            }
        }
        for (name, folder) in &self.folders {
            let before = match kind_of(&builder, name)? {
                Some((Some(ObjectType::Tree), id)) => Some(id),
                Some(_) | None => None,
            };
            match folder.write_folder(git, before)? {
                Some(tree) => drop(builder.insert(name, tree, FOLDER)?),
                None if before.is_some() => builder.remove(name)?,
                None => {}
            }
        }
        Ok(if builder.is_empty() {
            None
        } else {
            Some(builder.write()?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_names(git: &git2::Repository, tree: Oid) -> Vec<String> {
        let files = list_tracked_files(git, tree).unwrap();
        files.keys().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn updated_tree_equals_whole_tree() {
        let folder = tempfile::TempDir::new().unwrap();
        let git = git2::Repository::init_bare(folder.path()).unwrap();
        let (one, two) = (git.blob(b"1").unwrap(), git.blob(b"2").unwrap());
        let build = |files: &[(&str, Oid)]| -> TrackedFiles {
            let entry = |(path, id): &(&str, Oid)| (PathBuf::from(path), (*id, 0o100_644));
            files.iter().map(entry).collect()
        };
        let states = [
            build(&[("a/b/c", one), ("a/d", one), ("e", one)]),
            build(&[("a/b/c", two), ("a/d", one), ("e", one)]),
            // A folder in the place of a file, and the reverse.
            build(&[("a", one), ("e/f/g", two)]),
            build(&[("a/b/c", one), ("e", two), ("h.x", one), ("h/i", one)]),
            build(&[]),
        ];
        for before in &states {
            for after in &states {
                let mut update = TreeUpdate::default();
                for path in before.keys().filter(|path| !after.contains_key(*path)) {
                    update.set(path, None);
                }
                for (path, file) in after {
                    if before.get(path) != Some(file) {
                        update.set(path, Some(*file));
                    }
                }
                let old = write_tree_of(&git, before).unwrap();
                let new = update.write(&git, Some(old)).unwrap();
                assert_eq!(new, write_tree_of(&git, after).unwrap(), "{after:?}");
                assert_eq!(list_names(&git, new).len(), after.len());
            }
        }
    }

    #[test]
    fn files_at_path_are_listed() {
        let folder = tempfile::TempDir::new().unwrap();
        let git = git2::Repository::init_bare(folder.path()).unwrap();
        let file = (git.blob(b"1").unwrap(), 0o100_644);
        let files: TrackedFiles = ["a/b/c", "a/d", "a.x", "e"]
            .map(|path| (PathBuf::from(path), file))
            .into();
        let tree = git.find_tree(write_tree_of(&git, &files).unwrap()).unwrap();
        for (path, expected) in [
            ("", &["a/b/c", "a/d", "a.x", "e"][..]),
            ("a", &["a/b/c", "a/d"]),
            ("a/b", &["a/b/c"]),
            ("e", &["e"]),
            ("e/f", &[]),
            ("missing", &[]),
        ] {
            let listed = list_files_at(&git, &tree, Path::new(path)).unwrap();
            let listed: Vec<&Path> = listed.keys().map(PathBuf::as_path).collect();
            let expected: Vec<&Path> = expected.iter().map(Path::new).collect();
            assert_eq!(listed, expected, "{path}");
        }
    }

    #[test]
    fn folders_are_distinct_from_files() {
        let folder = tempfile::TempDir::new().unwrap();
        let git = git2::Repository::init_bare(folder.path()).unwrap();
        let file = (git.blob(b"1").unwrap(), 0o100_755);
        let files = TrackedFiles::from([(PathBuf::from("a/b"), file)]);
        let tree = git.find_tree(write_tree_of(&git, &files).unwrap()).unwrap();
        let find = |path: &str| find_tracked_file(&tree, Path::new(path)).unwrap();
        assert_eq!(find("a/b"), Some(file));
        for path in ["a", "b", "a/b/c", "c/d"] {
            assert_eq!(find(path), None, "{path}");
        }
        let has_folder = |path: &str| find_folder_tree(&git, &tree, Path::new(path)).unwrap().is_some();
        assert!(has_folder("") && has_folder("a"));
        assert!(!has_folder("a/b") && !has_folder("c") && !has_folder("a/b/c"));
    }
}

//! Types and values of many paths of a worktree, read folder by folder.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use super::root::{FileStat, WorkspaceRoot};
use crate::sandbox::stat_in;

/// Limit of folders that are open at a time.
const MAX_OPEN: usize = 64;

/// Reader of the types and values of paths. It keeps the folders above the last path open, so that each folder is
/// opened once when the paths are sorted.
///
/// Each scan needs a new reader: one that is older reads a replaced folder at its former place.
pub(super) struct FolderStats<'a> {
    root: &'a WorkspaceRoot,
    /// Folders of earlier paths, each beneath the one before.
    open: Vec<OpenFolder>,
}

struct OpenFolder {
    path: PathBuf,
    /// `None` when it does not exist or a part of its path is a symbolic link.
    descriptor: Option<OwnedFd>,
}

impl<'a> FolderStats<'a> {
    pub(super) fn new(root: &'a WorkspaceRoot) -> Self {
        Self {
            root,
            open: Vec::new(),
        }
    }

    /// Returns the same as [`WorkspaceRoot::stat`].
    pub(super) fn stat(&mut self, path: &Path) -> io::Result<Option<FileStat>> {
        let root = self.root;
        let Some(top) = root.own_folder() else {
            // The runner opens the folders of its worktree itself.
            return root.stat(path);
        };
        let parent = path.parent().unwrap_or(Path::new(""));
        while self.open.pop_if(|last| !parent.starts_with(&last.path)).is_some() {}
        if self.open.last().is_none_or(|last| last.path != parent) {
            let descriptor = top.find_folder(parent)?;
            if self.open.len() == MAX_OPEN {
                self.open.remove(0);
            }
            self.open.push(OpenFolder {
                path: parent.to_owned(),
                descriptor,
            });
        }
        match self.open.last().and_then(|last| last.descriptor.as_ref()) {
            Some(folder) => stat_in(folder, path),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt as _, symlink},
    };

    use super::*;
    use crate::workspace::root::FileKind;

    fn open_tree() -> (tempfile::TempDir, WorkspaceRoot) {
        let outer = tempfile::TempDir::new().unwrap();
        let tree = outer.path().join("tree");
        fs::create_dir_all(tree.join("a/b/c")).unwrap();
        fs::create_dir(tree.join("d")).unwrap();
        fs::write(outer.path().join("secret"), "secret").unwrap();
        for (number, name) in ["a/b/c/x", "a/b/x", "a/x", "a/z", "d/x", "x"].iter().enumerate() {
            fs::write(tree.join(name), "x".repeat(number)).unwrap();
        }
        symlink("a", tree.join("inward")).unwrap();
        symlink("..", tree.join("outward")).unwrap();
        symlink("../../secret", tree.join("d/link")).unwrap();
        let root = WorkspaceRoot::open(&tree).unwrap();
        (outer, root)
    }

    #[test]
    fn values_are_those_of_single_reads() {
        let (_outer, root) = open_tree();
        let mut stats = FolderStats::new(&root);
        let paths = [
            "a/b",
            "a/b/c/x",
            "a/b/x",
            "a/missing",
            "a/x",
            "a/x/y",
            "a/z",
            "d/link",
            "d/x",
            "inward",
            "missing/x",
            "outward",
            "x",
            "",
        ];
        // In both directions, because no caller has to sort the paths.
        for path in paths.iter().chain(paths.iter().rev()).map(Path::new) {
            let found = stats.stat(path).unwrap();
            assert_eq!(found, root.stat(path).unwrap(), "{}", path.display());
            let expected = fs::symlink_metadata(root.path().join(path)).ok();
            let values = |stat: FileStat| (stat.inode, stat.size);
            let expected = expected.map(|metadata| (metadata.ino(), metadata.len()));
            assert_eq!(found.map(values), expected, "{}", path.display());
        }
        let kind = |stats: &mut FolderStats<'_>, path: &str| {
            let found = stats.stat(Path::new(path)).unwrap();
            found.map(|stat| stat.kind)
        };
        assert_eq!(kind(&mut stats, "d/link"), Some(FileKind::Link));
        assert_eq!(kind(&mut stats, "inward"), Some(FileKind::Link));
        assert_eq!(kind(&mut stats, "a/b"), Some(FileKind::Folder));
        assert_eq!(kind(&mut stats, "x"), Some(FileKind::File { executable: false }));
    }

    #[test]
    fn folder_links_lead_nowhere() {
        let (_outer, root) = open_tree();
        let mut stats = FolderStats::new(&root);
        for path in ["inward/x", "inward/b/x", "outward/secret", "outward/tree/x"] {
            assert_eq!(stats.stat(Path::new(path)).unwrap(), None, "{path}");
            assert_eq!(root.stat(Path::new(path)).unwrap(), None, "{path}");
        }
        assert!(stats.stat(Path::new("../secret")).is_err());
    }

    #[test]
    fn folder_is_opened_once_for_sorted_paths() {
        let (_outer, root) = open_tree();
        let mut stats = FolderStats::new(&root);
        assert!(stats.stat(Path::new("a/b/c/x")).unwrap().is_some());
        assert!(stats.stat(Path::new("a/b/x")).unwrap().is_some());
        assert!(stats.stat(Path::new("a/x")).unwrap().is_some());
        // A folder that is opened again would be missing now.
        fs::rename(root.path().join("a"), root.path().join("moved")).unwrap();
        assert!(stats.stat(Path::new("a/z")).unwrap().is_some());
        assert_eq!(FolderStats::new(&root).stat(Path::new("a/z")).unwrap(), None);
    }

    #[test]
    fn deep_folders_keep_few_descriptors() {
        let (_outer, root) = open_tree();
        let mut stats = FolderStats::new(&root);
        let mut folder = PathBuf::new();
        for _ in 0..2 * MAX_OPEN {
            folder.push("n");
            fs::create_dir(root.path().join(&folder)).unwrap();
            let path = folder.join("x");
            fs::write(root.path().join(&path), "x").unwrap();
            assert!(stats.stat(&path).unwrap().is_some());
            assert!(stats.open.len() <= MAX_OPEN);
        }
    }
}

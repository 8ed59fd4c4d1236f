//! Prepared checkout in which no tool or command ran. A workspace at another commit changes only the files that differ.

use std::path::{Path, PathBuf};

use domain::CommitId;
use git::ExternalContent;
use git2::Oid;

use super::{
    Workspace, WorkspaceError, WorkspaceStart,
    disk::{self, ScopedFolder},
    stat_cache::StatCache,
};
use crate::{lfs_contents::LfsContents, mirror::MirrorPath};

/// Files of one commit, with their git directory. Dropping it deletes its folder.
pub(crate) struct PreparedCheckout {
    folder: ScopedFolder,
    commit: CommitId,
    tree: Oid,
    cache: StatCache,
    external: ExternalContent,
    /// Contents of Git LFS that its files have.
    lfs: LfsContents,
    /// Keeps the mirror alive, because the git directory reads its objects.
    _mirror: MirrorPath,
}

impl PreparedCheckout {
    /// Writes a checkout of the base; `start` has no foundation. Blocks.
    pub(crate) fn create(folder: &Path, start: WorkspaceStart) -> Result<Self, WorkspaceError> {
        Self::of_workspace(Workspace::create(folder, start, None)?)
    }

    /// Moves the files of an untouched workspace to `folder`. Blocks.
    pub(crate) fn from_untouched(folder: &Path, workspace: Workspace) -> Result<Self, WorkspaceError> {
        let place = disk::claim_folder(folder, &workspace.repository)?;
        let mut kept = Self::of_workspace(workspace)?;
        kept.folder.move_to(place)?;
        Ok(kept)
    }

    fn of_workspace(workspace: Workspace) -> Result<Self, WorkspaceError> {
        let tree = workspace.history.tree();
        let tree = tree.ok_or_else(|| WorkspaceError::Trouble("a new checkout has no tree".to_owned()))?;
        Ok(Self {
            external: workspace.disk.external().clone(),
            cache: workspace.scanner.take_cache(),
            folder: workspace.disk.into_folder(),
            lfs: workspace.git.lfs,
            _mirror: workspace.git.mirror,
            commit: workspace.git.base,
            tree,
        })
    }

    /// True when a workspace with these contents of Git LFS would have the same files.
    pub(crate) fn has_contents(&self, lfs: &LfsContents) -> bool {
        self.lfs.has_same(lfs)
    }

    /// Moves its folder to another path.
    pub(super) fn move_to(mut self, place: PathBuf) -> Result<(ScopedFolder, PreparedFiles), WorkspaceError> {
        self.folder.move_to(place)?;
        let files = PreparedFiles {
            commit: self.commit,
            tree: self.tree,
            cache: self.cache,
            external: self.external,
        };
        Ok((self.folder, files))
    }
}

/// Content of a prepared folder.
pub(super) struct PreparedFiles {
    /// Commit whose index is already written.
    pub(super) commit: CommitId,
    pub(super) tree: Oid,
    pub(super) cache: StatCache,
    pub(super) external: ExternalContent,
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs, os::unix::fs::MetadataExt as _};

    use proptest::prelude::*;

    use super::*;
    use crate::workspace::tests::commit_tree;

    struct World {
        folder: tempfile::TempDir,
        commits: Vec<CommitId>,
    }

    /// Creates two commits: a file becomes a folder, another a link, one is removed, one is added, one stays.
    fn build_world() -> World {
        let folder = tempfile::TempDir::new().unwrap();
        let mirror = git::BareRepository::init_bare(&folder.path().join("mirror")).unwrap();
        let git = mirror.objects();
        let blob = |text: &str| git.blob(text.as_bytes()).unwrap();
        let tree = |entries: &[(&str, Oid, i32)]| {
            let mut builder = git.treebuilder(None).unwrap();
            for (name, id, mode) in entries {
                builder.insert(name, *id, *mode).unwrap();
            }
            builder.write().unwrap()
        };
        let inner = tree(&[("deep", blob("deep\n"), 0o100_644)]);
        let same = ("same", blob("same\n"), 0o100_644);
        let trees = [
            tree(&[
                same,
                ("a", blob("file\n"), 0o100_644),
                ("b", blob("file\n"), 0o100_644),
                ("c", inner, 0o040_000),
            ]),
            tree(&[
                same,
                ("a", inner, 0o040_000),
                ("b", blob("same"), 0o120_000),
                ("d", blob("#!\n"), 0o100_755),
            ]),
        ];
        let commits = trees.map(|tree| commit_tree(git, tree, None));
        World {
            folder,
            commits: commits.into(),
        }
    }

    impl World {
        fn start(&self, commit: usize) -> WorkspaceStart {
            WorkspaceStart::sample(self.folder.path(), self.commits[commit].clone())
        }

        fn open(&self, from: Option<usize>, commit: usize) -> Workspace {
            let folder = self.folder.path().join("workspaces");
            fs::create_dir_all(&folder).unwrap();
            let ready = from.map(|from| {
                PreparedCheckout::create(&self.folder.path().join("ready"), self.start(from)).unwrap()
            });
            Workspace::create(&folder, self.start(commit), ready).unwrap()
        }
    }

    #[test]
    fn prepared_checkout_equals_fresh_one() {
        let world = build_world();
        for (from, to) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let warm = world.open(Some(from), to);
            let cold = world.open(None, to);
            let tree =
                |workspace: &Workspace| workspace.tree(workspace.git.open().unwrap().objects()).unwrap();
            assert_eq!(tree(&warm), tree(&cold), "{from} to {to}");
            assert!(!warm.has_changed().unwrap());
            assert_eq!(warm.diff(1000).unwrap().files_changed, 0);
            let index = |workspace: &Workspace| {
                let index =
                    git2::Index::open(&workspace.disk.scratch().path().join("checkout.git/index")).unwrap();
                index
                    .iter()
                    .map(|entry| (entry.path, entry.id))
                    .collect::<Vec<_>>()
            };
            assert_eq!(index(&warm), index(&cold));
        }
    }

    #[test]
    fn untouched_workspace_serves_next_run() {
        let world = build_world();
        let pool = world.folder.path().join("ready");
        let inode = |workspace: &Workspace| fs::metadata(workspace.disk.place()).unwrap().ino();
        for (from, to) in [(0, 0), (0, 1), (1, 0)] {
            let first = world.open(None, from);
            let (place, first_inode) = (first.disk.place().to_owned(), inode(&first));
            let kept = PreparedCheckout::from_untouched(&pool, first).unwrap();
            assert!(!place.exists(), "its path is free for another run");
            let folder = world.folder.path().join("workspaces");
            let second = Workspace::create(&folder, world.start(to), Some(kept)).unwrap();
            assert_eq!(inode(&second), first_inode);
            let fresh = world.open(None, to);
            let tree =
                |workspace: &Workspace| workspace.tree(workspace.git.open().unwrap().objects()).unwrap();
            assert_eq!(tree(&second), tree(&fresh), "{from} to {to}");
            assert!(!second.has_changed().unwrap());
            drop(second);
            assert_eq!(fs::read_dir(&pool).unwrap().count(), 0, "nothing stays behind");
        }
    }

    /// Entry of a generated tree.
    #[derive(Clone, Debug)]
    enum AnyEntry {
        /// Text, and true for a program.
        File(&'static str, bool),
        Link(&'static str),
        Folder(AnyTree),
        Submodule,
    }

    type AnyTree = BTreeMap<&'static str, AnyEntry>;

    fn any_name() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec!["a", "b", "c"])
    }

    fn any_leaf() -> impl Strategy<Value = AnyEntry> {
        let text = prop::sample::select(vec!["x\ny\n", "x\r\n", ""]);
        prop_oneof![
            (text, any::<bool>()).prop_map(|(text, is_program)| AnyEntry::File(text, is_program)),
            prop::sample::select(vec!["b", "missing"]).prop_map(AnyEntry::Link),
        ]
    }

    /// Generates trees with few names, so that files, links and folders take the places of each other.
    fn any_tree() -> impl Strategy<Value = AnyTree> {
        let entry = any_leaf().prop_recursive(2, 8, 3, |inner| {
            prop::collection::btree_map(any_name(), inner, 1..3).prop_map(AnyEntry::Folder)
        });
        let attributes = prop::sample::select(vec!["* text eol=crlf\n", "* -text\n"]);
        let entries = prop::collection::btree_map(any_name(), entry, 0..4);
        (entries, prop::option::of(attributes)).prop_map(|(mut entries, attributes)| {
            let attributes = attributes.map(|text| (".gitattributes", AnyEntry::File(text, false)));
            entries.extend(attributes);
            entries
        })
    }

    fn write_any_tree(git: &git2::Repository, entries: &AnyTree) -> Oid {
        let mut builder = git.treebuilder(None).unwrap();
        for (name, entry) in entries {
            let (id, mode) = match entry {
                AnyEntry::File(text, false) => (git.blob(text.as_bytes()).unwrap(), 0o100_644),
                AnyEntry::File(text, true) => (git.blob(text.as_bytes()).unwrap(), 0o100_755),
                AnyEntry::Link(target) => (git.blob(target.as_bytes()).unwrap(), 0o120_000),
                AnyEntry::Folder(inner) => (write_any_tree(git, inner), 0o040_000),
                AnyEntry::Submodule => (Oid::from_bytes(&[7; 20]).unwrap(), 0o160_000),
            };
            builder.insert(name, id, mode).unwrap();
        }
        builder.write().unwrap()
    }

    fn build_any_world(trees: &[AnyTree; 2]) -> World {
        let folder = tempfile::TempDir::new().unwrap();
        let mirror = git::BareRepository::init_bare(&folder.path().join("mirror")).unwrap();
        let git = mirror.objects();
        let commits = trees.iter();
        let commits = commits.map(|entries| commit_tree(git, write_any_tree(git, entries), None));
        World {
            commits: commits.collect(),
            folder,
        }
    }

    /// Everything about a path of a worktree that a program can see, times aside.
    #[derive(Debug, PartialEq, Eq)]
    struct PathFacts {
        mode: u32,
        links: u64,
        attribute_bytes: usize,
        content: Vec<u8>,
    }

    /// Describes everything below a folder except the file `.git`, which names the workspace.
    fn list_entries(folder: &Path) -> BTreeMap<PathBuf, PathFacts> {
        let mut found = BTreeMap::new();
        let mut open = vec![PathBuf::new()];
        while let Some(below) = open.pop() {
            for entry in fs::read_dir(folder.join(&below)).unwrap() {
                let name = below.join(entry.unwrap().file_name());
                let path = folder.join(&name);
                if name == Path::new(".git") {
                    continue;
                }
                let about = fs::symlink_metadata(&path).unwrap();
                let (links, content) = if about.is_dir() {
                    open.push(name.clone());
                    // The number of links of a folder is an affair of the file system.
                    (0, Vec::new())
                } else if about.is_symlink() {
                    let target = fs::read_link(&path).unwrap();
                    (about.nlink(), target.into_os_string().into_encoded_bytes())
                } else {
                    (about.nlink(), fs::read(&path).unwrap())
                };
                let mut names = [0_u8; 4096];
                // A file system without extended attributes has none.
                let attribute_bytes = rustix::fs::llistxattr(&path, &mut names[..]).unwrap_or(0);
                let facts = PathFacts {
                    mode: about.mode(),
                    links,
                    attribute_bytes,
                    content,
                };
                found.insert(name, facts);
            }
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn prepared_files_equal_those_of_fresh_checkout(trees in [any_tree(), any_tree()]) {
            let world = build_any_world(&trees);
            let warm = world.open(Some(0), 1);
            let cold = world.open(None, 1);
            let entries = |workspace: &Workspace| list_entries(workspace.root().path());
            prop_assert_eq!(entries(&warm), entries(&cold));
        }
    }

    #[test]
    fn former_submodule_leaves_no_folder() {
        let file = || AnyEntry::File("x\n", false);
        let inside = AnyEntry::Folder(AnyTree::from([("a", AnyEntry::Submodule)]));
        let before = AnyTree::from([
            ("a", AnyEntry::Submodule),
            ("b", inside),
            ("c", AnyEntry::Submodule),
        ]);
        let after = AnyTree::from([
            ("a", file()),
            ("c", AnyEntry::Folder(AnyTree::from([("b", file())]))),
        ]);
        let world = build_any_world(&[before, after]);
        let (warm, cold) = (world.open(Some(0), 1), world.open(None, 1));
        let entries = |workspace: &Workspace| list_entries(workspace.root().path());
        assert_eq!(entries(&warm), entries(&cold));
        assert!(!warm.root().path().join("b").exists());
    }

    #[test]
    fn dropped_checkout_deletes_its_folder() {
        let world = build_world();
        let place = world.folder.path().join("ready");
        let ready = PreparedCheckout::create(&place, world.start(0)).unwrap();
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
        drop(ready);
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    }

    /// Writes a tree that git itself would refuse to write.
    fn raw_tree(git: &git2::Repository, entries: &[(&str, &str, Oid)]) -> Oid {
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            bytes.extend(format!("{mode} {name}\0").into_bytes());
            bytes.extend(id.as_bytes());
        }
        git.odb().unwrap().write(git2::ObjectType::Tree, &bytes).unwrap()
    }

    #[test]
    fn checkout_omits_hostile_names() {
        let world = build_world();
        let mirror = git::BareRepository::open(&world.folder.path().join("mirror")).unwrap();
        let git = mirror.objects();
        let blob = git.blob(b"hostile").unwrap();
        let inner = raw_tree(git, &[("100644", "config", blob)]);
        let tree = raw_tree(
            git,
            &[
                ("40000", "..", inner),
                ("40000", ".GIT", inner),
                ("40000", ".git", inner),
                ("100644", "a/../../b", blob),
                ("40000", "git~1", inner),
                ("100644", "ok", blob),
            ],
        );
        // Written as raw bytes, because the library would refuse to create the commit.
        let text = format!(
            "tree {tree}\nauthor A <a@acme.example> 1 +0000\ncommitter A <a@acme.example> 1 +0000\n\nx\n"
        );
        let commit = git
            .odb()
            .unwrap()
            .write(git2::ObjectType::Commit, text.as_bytes())
            .unwrap();
        let folder = world.folder.path().join("workspaces");
        for from in [None, Some(0)] {
            let start = WorkspaceStart {
                base: commit.to_string().parse().unwrap(),
                ..world.start(0)
            };
            let ready = from.map(|from| PreparedCheckout::create(&folder, world.start(from)).unwrap());
            // Opening may succeed or fail, but nothing hostile is written.
            let opened = Workspace::create(&folder, start, ready);
            if let Ok(workspace) = &opened {
                let root = fs::read_dir(workspace.root().path())
                    .unwrap()
                    .filter_map(Result::ok);
                let names: Vec<_> = root
                    .map(|entry| entry.file_name().into_string().unwrap())
                    .collect();
                assert_eq!(names, ["ok"], "{from:?}");
            }
            drop(opened);
            assert!(
                !world.folder.path().join("b").exists()
                    && !folder.join("b").exists()
                    && !folder.join("config").exists()
            );
        }
    }
}

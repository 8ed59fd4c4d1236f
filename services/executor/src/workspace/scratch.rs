//! Scratch tree: the files of one check, made from git objects and the results of setup.
//!
//! Commands of the model never see it. For the check's command it is at the workspace's path, because tools
//! write absolute paths into installed files: with mount namespaces for this command alone, and otherwise because
//! the folders are swapped.

use std::{
    collections::HashSet,
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use domain::{TreeId, cause::format_error_chain};
use git2::Oid;

use super::{
    Workspace, WorkspaceError, WorkspaceRoot,
    checkout::CheckoutWriter,
    hunks::{TreeHunk, list_hunks, revert_hunks},
    tracked_files::{TreeUpdate, list_files_at, list_tracked_files},
};
use crate::{
    cleanup,
    sandbox::{FileTask, PathCover, RunnerSession, SwapFolders, WorkspaceFolder},
};

/// Folders of a check that only its command sees, as in a workspace: worktree, home folder in the scratch space,
/// and the place at which the launcher shows the workspace's git directory.
const SHOWN: [&str; 3] = ["tree", "tmp/home", "git"];

/// Files that a check sees.
#[derive(Clone, Debug)]
pub(crate) enum ScratchContent {
    /// Files of the base commit.
    Base,
    /// Current files of the workspace.
    Head,
    /// Files of the base commit, with these of the workspace.
    BaseWith(Vec<PathBuf>),
    /// Files of the workspace, which must have this tree, without these hunks.
    HeadWithout(TreeId, Vec<usize>),
    /// Files of the workspace, which must have this tree, with these of the base and without these hunks of
    /// others.
    HeadWithBase(TreeId, Vec<PathBuf>, Vec<usize>),
}

/// Files of one check. Dropping it deletes them.
pub(crate) struct ScratchTree {
    pub(crate) tree: Oid,
    /// Some of the files of setup that were changed since and are therefore missing here.
    pub(crate) tampered: Vec<String>,
    /// True when the tree is that of the base commit, with every file as setup left it.
    pub(crate) is_pure_base: bool,
    root: WorkspaceRoot,
    way: ScratchLocation,
    /// Keeps the workspace, whose folder the check uses.
    workspace: Arc<Workspace>,
}

/// Location of the files.
enum ScratchLocation {
    /// Folder of this process that only the check's command sees at the workspace's path.
    Shown(PathBuf),
    /// Folders of this process that are swapped with those of the workspace.
    Swapped(SwapFolders),
    /// Folders of the runner, which swaps them.
    Runners(Arc<RunnerSession>),
}

impl ScratchTree {
    /// Creates the files in a new folder in `beside`, which must be on the file system of the workspace.
    ///
    /// No tool and no command may run in the workspace meanwhile. With `is_shown`, the mount namespace of the
    /// check's command shows the folder; otherwise the workspace must stay unused until the files are deleted.
    /// Blocks.
    pub(crate) fn make(
        workspace: Arc<Workspace>,
        beside: &Path,
        wanted: &ScratchContent,
        is_shown: bool,
    ) -> Result<Self, WorkspaceError> {
        // The folder belongs to the user and is in use, so it cannot be swapped.
        if workspace.git.is_adopted() {
            return Err(WorkspaceError::Unkeepable(
                "checks need a workspace of their own, not a folder that was there before".to_owned(),
            ));
        }
        let repository = workspace.git.open()?;
        let tree = wanted.tree(&workspace, repository.objects())?;
        let beside = beside.join(uuid::Uuid::new_v4().simple().to_string());
        let (way, [root, scratch]) = if is_shown {
            create_shown_folders(beside)?
        } else {
            create_swapped_folders(&workspace, &beside)?
        };
        // The value exists before its folders are filled, so that a failure drops it and deletes them.
        let mut made = Self {
            tree,
            tampered: Vec::new(),
            is_pure_base: false,
            root,
            way,
            workspace,
        };
        let is_complete = made.fill(&repository, &scratch)?;
        made.is_pure_base = is_complete && matches!(wanted, ScratchContent::Base);
        Ok(made)
    }

    /// Writes the files. Returns true when every file of setup is as setup left it.
    fn fill(
        &mut self,
        repository: &git::BareRepository,
        scratch: &WorkspaceRoot,
    ) -> Result<bool, WorkspaceError> {
        let (workspace, git) = (&self.workspace, repository.objects());
        let writer = CheckoutWriter {
            directory: &workspace.git,
            root: &self.root,
        };
        writer.write_tree(git, self.tree)?;
        let files: HashSet<PathBuf> = list_tracked_files(git, self.tree)?.into_keys().collect();
        let copied = workspace
            .setup
            .copy(&workspace.disk, &self.root, scratch, &|path| files.contains(path))?;
        self.tampered = copied.tampered;
        workspace
            .view_source()
            .show_to_check(repository, &self.root, scratch)?;
        Ok(copied.is_complete)
    }

    /// Swaps the files into the workspace's path, unless a mount namespace shows them there. Blocks.
    pub(crate) fn enter(&mut self) -> Result<(), WorkspaceError> {
        match &mut self.way {
            ScratchLocation::Shown(_) => Ok(()),
            ScratchLocation::Swapped(stage) => Ok(stage.enter()?),
            ScratchLocation::Runners(session) => Ok(session.check(FileTask::EnterCheck)?),
        }
    }

    /// Folder that the check's command sees in place of the workspace's; `None` when they are swapped.
    pub(crate) fn shown_folder(&self) -> Option<PathCover> {
        match &self.way {
            ScratchLocation::Shown(folder) => Some(PathCover {
                from: folder.clone(),
                at: self.workspace.disk.place().to_owned(),
                writable: true,
            }),
            ScratchLocation::Swapped(_) | ScratchLocation::Runners(_) => None,
        }
    }

    /// Root of the files, before and after the swap.
    pub(crate) fn root(&self) -> &WorkspaceRoot {
        &self.root
    }

    /// Restores the workspace's folders and deletes the files. After a failure the workspace is unusable.
    /// Blocks.
    pub(crate) fn end(mut self) -> Result<(), WorkspaceError> {
        self.give_back()
    }

    fn give_back(&mut self) -> Result<(), WorkspaceError> {
        match &mut self.way {
            ScratchLocation::Shown(folder) => remove_scratch(folder),
            ScratchLocation::Swapped(stage) => {
                // Before the deletion: the workspace's own folders lie in the deleted folder until then.
                stage.leave()?;
                remove_scratch(stage.beside());
            }
            ScratchLocation::Runners(session) => session.check(FileTask::EndCheck)?,
        }
        Ok(())
    }
}

/// Deletes the folder of a check. Leftovers only take space; the next start of the executor deletes them.
fn remove_scratch(folder: &Path) {
    if let Err(error) = cleanup::remove_folder(folder) {
        tracing::warn!(error = %format_error_chain(&error), "a scratch tree stays behind");
    }
}

impl Drop for ScratchTree {
    fn drop(&mut self) {
        if let Err(problem) = self.give_back() {
            tracing::error!(%problem, run = %self.workspace.run, "a scratch tree cannot be taken away");
        }
    }
}

fn create_shown_folders(beside: PathBuf) -> Result<(ScratchLocation, [WorkspaceRoot; 2]), WorkspaceError> {
    let make = |name: &str| -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o755).create(beside.join(name))
    };
    let opened = SHOWN.into_iter().try_for_each(make).and_then(|()| {
        let open = |name: &str| WorkspaceRoot::open(&beside.join(name));
        Ok([open("tree")?, open("tmp")?])
    });
    match opened {
        Ok(roots) => Ok((ScratchLocation::Shown(beside), roots)),
        Err(error) => {
            remove_scratch(&beside);
            Err(error.into())
        }
    }
}

fn create_swapped_folders(
    workspace: &Workspace,
    beside: &Path,
) -> Result<(ScratchLocation, [WorkspaceRoot; 2]), WorkspaceError> {
    if let Some(session) = workspace.disk.session() {
        session.check(FileTask::BeginCheck)?;
        let root = |folder| WorkspaceRoot::at_runner(session, folder);
        let roots = [
            root(WorkspaceFolder::CheckTree),
            root(WorkspaceFolder::CheckScratch),
        ];
        return Ok((ScratchLocation::Runners(Arc::clone(session)), roots));
    }
    let stage = SwapFolders::make(workspace.disk.place(), beside)?;
    let [tree, scratch] = stage.folders();
    let roots = [WorkspaceRoot::open(&tree)?, WorkspaceRoot::open(&scratch)?];
    Ok((ScratchLocation::Swapped(stage), roots))
}

impl ScratchContent {
    /// Builds the tree of the files.
    fn tree(&self, workspace: &Workspace, git: &git2::Repository) -> Result<Oid, WorkspaceError> {
        match self {
            Self::Base => workspace.git.base_tree(git),
            Self::Head => workspace.tree(git),
            Self::BaseWith(paths) => {
                let (base, head) = (workspace.git.base_tree(git)?, workspace.tree(git)?);
                overlay_paths(git, base, head, paths)
            }
            Self::HeadWithout(counted, numbers) => {
                let (base, head) = counted_trees(workspace, git, counted)?;
                revert_hunks(git, base, head, &select_hunks(git, base, head, numbers)?)
            }
            Self::HeadWithBase(counted, paths, numbers) => {
                let (base, head) = counted_trees(workspace, git, counted)?;
                let mut taken = select_hunks(git, base, head, numbers)?;
                // Hunks of these files need no revert, because the whole files come from the base.
                taken.retain(|hunk| !paths.iter().any(|named| hunk.path.starts_with(named)));
                let less = revert_hunks(git, base, head, &taken)?;
                overlay_paths(git, less, base, paths)
            }
        }
    }
}

/// Returns the trees of the base and of the current files. The current tree must be the one whose hunks were
/// counted, or the hunk numbers would be wrong.
fn counted_trees(
    workspace: &Workspace,
    git: &git2::Repository,
    counted: &TreeId,
) -> Result<(Oid, Oid), WorkspaceError> {
    let (base, head) = (workspace.git.base_tree(git)?, workspace.tree(git)?);
    if head.to_string() != counted.to_string() {
        return Err(WorkspaceError::BadRequest(
            "the workspace's files are others than those whose hunks were counted; inspect the change again"
                .to_owned(),
        ));
    }
    Ok((base, head))
}

/// Returns the hunks of a change with these numbers.
fn select_hunks(
    git: &git2::Repository,
    base: Oid,
    head: Oid,
    numbers: &[usize],
) -> Result<Vec<TreeHunk>, WorkspaceError> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let hunks: Vec<TreeHunk> = list_hunks(git, base, head)?;
    let one = |number: &usize| {
        hunks.get(*number).cloned().ok_or_else(|| {
            WorkspaceError::BadRequest(format!(
                "the change has {} hunks, and none of number {number}",
                hunks.len()
            ))
        })
    };
    numbers.iter().map(one).collect()
}

/// Returns a tree in which these paths have the content of another tree. Paths that the other tree lacks are
/// removed.
fn overlay_paths(
    git: &git2::Repository,
    tree: Oid,
    other: Oid,
    paths: &[PathBuf],
) -> Result<Oid, WorkspaceError> {
    let (before, after) = (git.find_tree(tree)?, git.find_tree(other)?);
    let mut update = TreeUpdate::default();
    for path in paths {
        for file in list_files_at(git, &before, path)?.keys() {
            update.set(file, None);
        }
    }
    // After all removals, because one path may contain another.
    for path in paths {
        for (file, entry) in list_files_at(git, &after, path)? {
            update.set(&file, Some(entry));
        }
    }
    update.write(git, Some(tree))
}

#[cfg(test)]
mod tests {
    use git2::{ObjectType, Repository};

    use super::*;
    use crate::workspace::tracked_files::{TrackedFiles, write_tree_of};

    fn create_repository() -> (tempfile::TempDir, Repository) {
        let folder = tempfile::TempDir::new().unwrap();
        let git = Repository::init_bare(folder.path()).unwrap();
        (folder, git)
    }

    fn write_files(git: &Repository, text: &str, paths: &[&str]) -> Oid {
        let file = (git.blob(text.as_bytes()).unwrap(), 0o100_644);
        let files: TrackedFiles = paths.iter().map(|path| (path.into(), file)).collect();
        write_tree_of(git, &files).unwrap()
    }

    /// Lists the files of a tree, each with its text.
    fn render_files(git: &Repository, tree: Oid) -> String {
        let files = list_tracked_files(git, tree).unwrap().into_iter();
        let files = files.map(|(path, (id, _))| {
            let blob = git.find_blob(id).unwrap();
            format!("{}={}", path.display(), String::from_utf8_lossy(blob.content()))
        });
        files.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn named_paths_come_from_other_tree() {
        let (_folder, git) = create_repository();
        let tree = write_files(&git, "1", &["a", "b/c", "b/d/e", "f"]);
        let other = write_files(&git, "2", &["a/x", "b", "f", "g"]);
        for (paths, expected) in [
            (&["f"][..], "a=1 b/c=1 b/d/e=1 f=2"),
            (&[], "a=1 b/c=1 b/d/e=1 f=1"),
            (&["g", "missing"], "a=1 b/c=1 b/d/e=1 f=1 g=2"),
            (&["b/d"], "a=1 b/c=1 f=1"),
            // A folder in the place of a file, and the reverse.
            (&["a"], "a/x=2 b/c=1 b/d/e=1 f=1"),
            (&["a/x"], "a/x=2 b/c=1 b/d/e=1 f=1"),
            (&["b", "b/c"], "a=1 b=2 f=1"),
            (&["f", ""], "a/x=2 b=2 f=2 g=2"),
        ] {
            let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
            let overlaid = overlay_paths(&git, tree, other, &paths).unwrap();
            assert_eq!(render_files(&git, overlaid), expected, "{paths:?}");
        }
        assert_eq!(overlay_paths(&git, tree, tree, &["b".into()]).unwrap(), tree);
    }

    #[test]
    fn unnamed_folder_is_never_read() {
        let (_folder, git) = create_repository();
        let missing = Oid::from_bytes(&[7; 20]).unwrap();
        // Written as raw bytes, because the library refuses a folder without an object.
        let write = |text: &str| {
            let mut bytes = Vec::new();
            let file = git.blob(text.as_bytes()).unwrap();
            for (entry, id) in [("100644 a", file), ("40000 unread", missing)] {
                bytes.extend_from_slice(entry.as_bytes());
                bytes.push(0);
                bytes.extend_from_slice(id.as_bytes());
            }
            git.odb().unwrap().write(ObjectType::Tree, &bytes).unwrap()
        };
        let (tree, other) = (write("1"), write("2"));
        assert_eq!(overlay_paths(&git, tree, other, &["a".into()]).unwrap(), other);
    }
}

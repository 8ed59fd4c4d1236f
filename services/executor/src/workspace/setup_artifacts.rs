//! Moves the results of setup commands out of a workspace and into another: the files outside of the
//! repository's own.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use git2::Oid;

use super::{
    Workspace, WorkspaceError,
    copy::{self, FileAmount, FolderCopy, KnownFiles},
    disk::WorkspaceDisk,
    tracked_files::{TrackedFiles, list_tracked_files},
};
use crate::cleanup;

/// Names in the stored result: files of the home folder, and files of the worktree.
const HOME: &str = "home";
const TREE: &str = "tree";

/// Files of a workspace before any command ran.
pub(crate) struct WorkspaceOrigin {
    /// Git tree of the files.
    pub(crate) tree: Oid,
    files: TrackedFiles,
    known: KnownFiles,
}

impl WorkspaceOrigin {
    /// Reads the files of a newly created workspace. Blocks.
    pub(crate) fn read(workspace: &Workspace) -> Result<Self, WorkspaceError> {
        let tree = workspace.history.tree();
        let tree = tree.ok_or_else(|| WorkspaceError::Trouble("a new checkout has no tree".to_owned()))?;
        let repository = workspace.git.open()?;
        let files = list_tracked_files(repository.objects(), tree)?;
        let git_file = PathBuf::from(".git");
        let known = KnownFiles::new(files.keys().chain([&git_file]));
        Ok(Self { tree, files, known })
    }

    /// Returns true when one of the paths satisfies the predicate.
    pub(crate) fn has_file(&self, is_wanted: impl Fn(&Path) -> bool) -> bool {
        self.files.keys().any(|path| is_wanted(path))
    }

    /// Copies all files of the worktree and the home folder that are not in the origin.
    ///
    /// `None` when a file of the origin changed, because the copy would then be incomplete. The caller must
    /// call it after the scan of the files. Blocks.
    pub(crate) fn take_out(
        &self,
        workspace: &Workspace,
        to: &Path,
        max_bytes: u64,
    ) -> Result<Option<FileAmount>, WorkspaceError> {
        let repository = workspace.git.open()?;
        let disk = &workspace.disk;
        let seen = workspace.history.tree().unwrap_or(self.tree);
        let now = list_tracked_files(repository.objects(), seen)?;
        // A setup that changes tracked files would need these changes too, and the cache does not store them.
        if self.files.iter().any(|(path, was)| now.get(path) != Some(was)) {
            return Ok(None);
        }
        let mut files = FolderCopy::new(&self.known, max_bytes);
        files.run(&tree_folder(disk)?, &new_folder(&to.join(TREE))?)?;
        let mut home = FolderCopy::new(&NOTHING, max_bytes.saturating_sub(files.copied.bytes));
        home.run(&copy::open_folder(&disk.home())?, &new_folder(&to.join(HOME))?)?;
        Ok(Some(add_amounts(files.copied, home.copied)))
    }

    /// Copies the result of another workspace with the same origin into this one, and checks its amount. On
    /// failure, all copied files are removed. Blocks.
    pub(crate) fn put_in(
        &self,
        disk: &WorkspaceDisk,
        from: &Path,
        amount: FileAmount,
    ) -> Result<(), WorkspaceError> {
        let mut files = FolderCopy::new(&self.known, amount.bytes);
        let mut home = FolderCopy::new(&NOTHING, amount.bytes);
        let done = run_copies(disk, &mut files, &mut home, (from, amount));
        if done.is_err() {
            let made = files.made.iter().map(|path| disk.root().path().join(path));
            for path in made.chain(home.made.iter().map(|path| disk.home().join(path))) {
                delete_path(&path)?;
            }
        }
        done
    }
}

/// Copies the stored files of worktree and home folder, and compares their amount with the expected one.
fn run_copies(
    disk: &WorkspaceDisk,
    files: &mut FolderCopy<'_>,
    home: &mut FolderCopy<'_>,
    (from, amount): (&Path, FileAmount),
) -> Result<(), WorkspaceError> {
    files.run(&copy::open_folder(&from.join(TREE))?, &tree_folder(disk)?)?;
    home.run(
        &copy::open_folder(&from.join(HOME))?,
        &copy::open_folder(&disk.home())?,
    )?;
    let whole = add_amounts(add_amounts(files.copied, files.left_out), home.copied);
    if whole == amount {
        return Ok(());
    }
    Err(WorkspaceError::Trouble(format!(
        "{whole:?} is there instead of {amount:?}"
    )))
}

/// Opens the worktree in this process. With a runner no results are stored, because the worktree belongs to
/// another user.
fn tree_folder(disk: &WorkspaceDisk) -> Result<OwnedFd, WorkspaceError> {
    Ok(copy::open_folder(disk.root().path())?)
}

/// No file of a home folder is omitted.
static NOTHING: LazyLock<KnownFiles> = LazyLock::new(KnownFiles::default);

fn add_amounts(a: FileAmount, b: FileAmount) -> FileAmount {
    FileAmount {
        files: a.files + b.files,
        bytes: a.bytes + b.bytes,
    }
}

fn new_folder(path: &Path) -> Result<OwnedFd, WorkspaceError> {
    fs::create_dir_all(path)?;
    Ok(copy::open_folder(path)?)
}

/// Deletes a path. No command has run in the workspace yet, so no process can swap the path meanwhile.
fn delete_path(path: &Path) -> Result<(), WorkspaceError> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_dir() => Ok(cleanup::remove_folder(path)?),
        Ok(_) => Ok(fs::remove_file(path)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

//! What setup commands left in a workspace beside the repository's own files: taken out of one, put into another.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use git2::Oid;

use super::{
    Problem, Workspace,
    copy::{self, Amount, Copy, Known},
    scan::{Files, tracked},
};
use crate::disk;

/// The part from the home folder, and the part from the worktree.
const HOME: &str = "home";
const TREE: &str = "tree";

/// A workspace's files before any command ran.
pub(crate) struct Origin {
    /// Their tree, as git names it.
    pub(crate) tree: Oid,
    files: Files,
    known: Known,
}

impl Origin {
    /// Whether a file with this property is among them.
    pub(crate) fn has_file(&self, is_wanted: impl Fn(&Path) -> bool) -> bool {
        self.files.keys().any(|path| is_wanted(path))
    }
}

impl Workspace {
    /// The files as they are when the workspace has just been made. Blocks.
    pub(crate) fn origin(&self) -> Result<Origin, Problem> {
        let tree = self.lock().seen.as_ref().map(|(tree, ..)| *tree);
        let tree = tree.ok_or_else(|| Problem::Trouble("a new checkout has no tree".to_owned()))?;
        let repository = self.git()?;
        let files = tracked(repository.objects(), &repository.objects().find_tree(tree)?)?;
        let git_file = PathBuf::from(".git");
        let known = Known::new(files.keys().chain([&git_file]));
        Ok(Origin { tree, files, known })
    }

    /// Whether this process itself keeps the files.
    pub(crate) fn is_ours(&self) -> bool {
        self.session.is_none()
    }

    /// Where the workspace lies; tools write it into what they install.
    pub(crate) fn place(&self) -> &Path {
        &self.folder.0
    }

    /// Copies all that is in the worktree and the home folder and was not in the origin. `None` when a file of the
    /// origin is no longer what it was: then that is not all that was left. Call it when the workspace has settled. Blocks.
    pub(crate) fn take_out(
        &self,
        origin: &Origin,
        to: &Path,
        max_bytes: u64,
    ) -> Result<Option<Amount>, Problem> {
        let repository = self.git()?;
        let seen = self.lock().seen.as_ref().map_or(origin.tree, |(tree, ..)| *tree);
        let now = tracked(repository.objects(), &repository.objects().find_tree(seen)?)?;
        if origin.files.iter().any(|(path, was)| now.get(path) != Some(was)) {
            return Ok(None);
        }
        let mut files = Copy::new(&origin.known, max_bytes);
        files.run(&self.tree_folder()?, &new_folder(&to.join(TREE))?)?;
        let mut home = Copy::new(&NOTHING, max_bytes.saturating_sub(files.copied.bytes));
        home.run(&copy::open(&self.home())?, &new_folder(&to.join(HOME))?)?;
        Ok(Some(sum(files.copied, home.copied)))
    }

    /// Puts in what was taken out of a workspace with the same origin, and which was that much. On failure nothing of it
    /// stays. Blocks.
    pub(crate) fn put_in(&self, origin: &Origin, from: &Path, amount: Amount) -> Result<(), Problem> {
        let mut files = Copy::new(&origin.known, amount.bytes);
        let mut home = Copy::new(&NOTHING, amount.bytes);
        let done = self.put(&mut files, &mut home, from, amount);
        if done.is_err() {
            let made = files.made.iter().map(|path| self.root().path().join(path));
            for path in made.chain(home.made.iter().map(|path| self.home().join(path))) {
                take_away(&path)?;
            }
        }
        done
    }

    fn put(
        &self,
        files: &mut Copy<'_>,
        home: &mut Copy<'_>,
        from: &Path,
        amount: Amount,
    ) -> Result<(), Problem> {
        files.run(&copy::open(&from.join(TREE))?, &self.tree_folder()?)?;
        home.run(&copy::open(&from.join(HOME))?, &copy::open(&self.home())?)?;
        let whole = sum(sum(files.copied, files.left_out), home.copied);
        if whole == amount {
            return Ok(());
        }
        Err(Problem::Trouble(format!(
            "{whole:?} is there instead of {amount:?}"
        )))
    }

    /// This process's own way in: where the worktree is another user's, nothing is kept.
    fn tree_folder(&self) -> Result<OwnedFd, Problem> {
        Ok(copy::open(self.root().path())?)
    }

    fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }
}

/// What is left out of a home folder.
static NOTHING: LazyLock<Known> = LazyLock::new(Known::default);

fn sum(a: Amount, b: Amount) -> Amount {
    Amount {
        files: a.files + b.files,
        bytes: a.bytes + b.bytes,
    }
}

fn new_folder(path: &Path) -> Result<OwnedFd, Problem> {
    fs::create_dir_all(path)?;
    Ok(copy::open(path)?)
}

/// No command has run in the workspace yet, so nobody swaps what lies there.
fn take_away(path: &Path) -> Result<(), Problem> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_dir() => Ok(disk::remove(path)?),
        Ok(_) => Ok(fs::remove_file(path)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

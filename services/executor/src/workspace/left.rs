//! What setup commands left in a workspace beside the repository's own files: taken out of one, put into another.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use git2::{Delta, Oid};

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
    /// The content's id of every file with one of these properties, in the order of paths.
    pub(crate) fn contents(&self, is_wanted: impl Fn(&Path) -> bool) -> Vec<(&Path, Oid)> {
        let wanted = self.files.iter().filter(|(path, _)| is_wanted(path));
        wanted.map(|(path, (id, _))| (path.as_path(), *id)).collect()
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

    /// Puts in what was taken out of a workspace whose origin was `tree`, and which was that much. Files that differ between
    /// the two origins are younger than it then, so that build tools see what they must build again. On failure nothing of
    /// it stays. Blocks.
    pub(crate) fn put_in(
        &self,
        origin: &Origin,
        from: &Path,
        tree: Oid,
        amount: Amount,
    ) -> Result<(), Problem> {
        let mut files = Copy::new(&origin.known, amount.bytes);
        let mut home = Copy::new(&NOTHING, amount.bytes);
        let done = self.put(&mut files, &mut home, from, amount);
        let done = done.and_then(|()| self.touch_changed(tree, origin.tree));
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

    fn touch_changed(&self, was: Oid, is: Oid) -> Result<(), Problem> {
        if was == is {
            return Ok(());
        }
        let repository = self.git()?;
        let git = repository.objects();
        let diff = git.diff_tree_to_tree(Some(&git.find_tree(was)?), Some(&git.find_tree(is)?), None)?;
        let folder = self.tree_folder()?;
        for delta in diff.deltas().filter(|delta| delta.status() != Delta::Deleted) {
            if let Some(path) = delta.new_file().path() {
                copy::touch(&folder, path)?;
            }
        }
        Ok(())
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

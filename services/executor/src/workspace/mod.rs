//! A checkout that a run works in. The git directory lies outside the worktree; the worktree is written and read only
//! beneath its folder.

mod adopt;
pub(crate) mod beneath;
mod checkout;
mod history;
pub(crate) mod paths;
mod ready;
mod scan;
mod undo;

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use domain::{CommitId, RepositoryName, RunId};

use beneath::Root;
pub(crate) use history::SnapshotPack;
pub(crate) use ready::Ready;
use scan::StatCache;

/// What is wrong with a workspace, for the log and the caller's status.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// The repository lacks what was asked for.
    #[error("{0}")]
    NotFound(String),
    /// A snapshot does not fit this workspace.
    #[error("{0}")]
    BadSnapshot(String),
    /// The disk or git is in trouble.
    #[error("{0}")]
    Trouble(String),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Trouble(error.to_string())
    }
}

impl From<git::Error> for Problem {
    fn from(error: git::Error) -> Self {
        Self::Trouble(error.to_string())
    }
}

impl From<git2::Error> for Problem {
    fn from(error: git2::Error) -> Self {
        Self::Trouble(error.message().to_owned())
    }
}

/// Variables that name toolchains; they hold no secret.
const TOOLCHAINS: &[&str] = &["RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "JAVA_HOME", "GOROOT"];

/// What a new workspace starts from.
#[derive(Clone)]
pub(crate) struct Start {
    pub(crate) run: RunId,
    pub(crate) repository: RepositoryName,
    pub(crate) base: CommitId,
    pub(crate) base_branch: String,
    pub(crate) mirror: PathBuf,
    pub(crate) restore: Option<Restore>,
}

/// A snapshot to start from.
#[derive(Clone)]
pub(crate) struct Restore {
    pub(crate) branch: Option<String>,
    pub(crate) head: Option<CommitId>,
    pub(crate) commit: CommitId,
    pub(crate) pack: Vec<u8>,
}

/// One run's checkout. Its folder goes when it is dropped.
pub(crate) struct Workspace {
    pub(crate) id: String,
    pub(crate) run: RunId,
    pub(crate) repository: RepositoryName,
    pub(crate) base: CommitId,
    base_branch: String,
    folder: Folder,
    mirror: PathBuf,
    root: Root,
    scratch: Root,
    state: Mutex<State>,
}

/// Changes as tools run.
struct State {
    branch: Option<String>,
    head: Option<CommitId>,
    cache: StatCache,
    /// Tree, branch and head after the last look, so that a change is noticed.
    seen: Option<(git2::Oid, Option<String>, Option<CommitId>)>,
    /// Files before the latest changes, the newest last.
    undo: Vec<git2::Oid>,
    /// The next change is an undo, which is not undone in turn.
    undone: bool,
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, "a workspace's folder stays behind");
        }
    }
}

impl Workspace {
    /// Writes the checkout. Blocks.
    pub(crate) fn create(workspaces: &Path, start: Start) -> Result<Self, Problem> {
        Self::create_from(workspaces, start, None)
    }

    /// The same, from a checkout that is ready. Blocks.
    pub(crate) fn create_from(
        workspaces: &Path,
        start: Start,
        ready: Option<Ready>,
    ) -> Result<Self, Problem> {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let place = workspaces.join(&id);
        let (folder, files) = match ready {
            Some(ready) => ready
                .move_to(place)
                .map(|(folder, files)| (folder, Some(files)))?,
            None => (Folder(place), None),
        };
        for name in ["tree", "tmp/home"] {
            fs::create_dir_all(folder.0.join(name))?;
        }
        let root = Root::open(&folder.0.join("tree"))?;
        let scratch = Root::open(&folder.0.join("tmp"))?;
        let state = State {
            branch: None,
            head: None,
            cache: StatCache::default(),
            seen: None,
            undo: Vec::new(),
            undone: false,
        };
        let workspace = Self {
            id,
            run: start.run,
            repository: start.repository,
            base: start.base,
            base_branch: start.base_branch,
            folder,
            mirror: start.mirror,
            root,
            scratch,
            state: Mutex::new(state),
        };
        workspace.fill(start.restore, files)?;
        Ok(workspace)
    }

    /// The worktree.
    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// The path as the model wrote it, relative to the worktree.
    pub(crate) fn path(&self, text: &str) -> Result<PathBuf, String> {
        paths::relative(self.root.path(), text)
    }

    /// The path of something that is there. A part of a path is enough when it names the end of one file's path only.
    ///
    /// # Errors
    /// A text for the model: a path that leads out, or several files that the part names.
    pub(crate) fn existing(&self, text: &str) -> Result<PathBuf, String> {
        let path = self.path(text)?;
        if path.as_os_str().is_empty() || !matches!(self.root.stat(&path), Ok(None)) {
            return Ok(path);
        }
        let files = self.walk().build().filter_map(Result::ok);
        let files = files.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        let inside = |entry: ignore::DirEntry| {
            entry
                .path()
                .strip_prefix(self.root.path())
                .ok()
                .map(Path::to_owned)
        };
        let named: Vec<PathBuf> = files
            .filter_map(inside)
            .filter(|file| file.ends_with(&path))
            .take(6)
            .collect();
        match named.as_slice() {
            [] => Ok(path),
            [file] => Ok(file.clone()),
            files => {
                let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
                Err(format!(
                    "{text:?} names several files: {}. Give a longer path.",
                    names.join(", ")
                ))
            }
        }
    }

    /// Branch and its head, when there is one.
    pub(crate) fn branch(&self) -> (Option<String>, Option<CommitId>) {
        let state = self.lock();
        (state.branch.clone(), state.head.clone())
    }

    /// Folders that commands may write.
    pub(crate) fn writable(&self) -> Vec<PathBuf> {
        vec![self.root.path().to_owned(), self.scratch.path().to_owned()]
    }

    /// Folders that commands may read although they are the executor's.
    pub(crate) fn readable(&self) -> Vec<PathBuf> {
        vec![self.git_dir(), self.mirror.join("objects")]
    }

    /// Folders that commands must find where they are. One mount holds worktree and scratch space, so that a file can
    /// be renamed from one into the other.
    pub(crate) fn exposed(&self) -> Vec<PathBuf> {
        let mut exposed = vec![self.folder.0.clone()];
        exposed.extend(Some(self.root.path().to_owned()).filter(|root| !root.starts_with(&self.folder.0)));
        exposed
    }

    /// The whole environment of commands: git works on this checkout, and nothing of the executor's own is in it.
    pub(crate) fn environment(&self) -> Vec<(&'static str, OsString)> {
        let tmp = self.scratch.path();
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let mut environment = vec![
            ("PATH", path),
            ("HOME", tmp.join("home").into()),
            ("TMPDIR", tmp.into()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "dumb".into()),
            ("CI", "1".into()),
            ("GIT_DIR", self.git_dir().into()),
            ("GIT_WORK_TREE", self.root.path().into()),
            ("GIT_INDEX_FILE", tmp.join("index").into()),
            ("GIT_CONFIG_GLOBAL", tmp.join("home/.gitconfig").into()),
        ];
        environment.extend(toolchains());
        environment
    }

    fn git_dir(&self) -> PathBuf {
        self.folder.0.join("git")
    }

    fn git(&self) -> Result<git::Repository, Problem> {
        Ok(git::Repository::open(&self.git_dir())?)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where toolchains lie that do not stand in the path alone. rustup looks in the home folder, which commands do not see.
fn toolchains() -> Vec<(&'static str, OsString)> {
    let mut found: Vec<_> = TOOLCHAINS
        .iter()
        .filter_map(|name| Some((*name, std::env::var_os(name)?)))
        .collect();
    let rustup = std::env::home_dir().map(|home| home.join(".rustup"));
    if let Some(rustup) = rustup.filter(|folder| folder.is_dir())
        && !found.iter().any(|(name, _)| *name == "RUSTUP_HOME")
    {
        found.push(("RUSTUP_HOME", rustup.into()));
    }
    found
}

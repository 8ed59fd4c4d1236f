//! Checkout in which a run works. The git directory lies outside of the worktree. The worktree is read and
//! written only beneath its folder.

mod adoption;
mod byproduct;
mod change;
mod checkout;
mod checkout_path;
mod copy;
mod environment;
mod git_view;
mod history;
mod hunks;
mod objects;
mod omissions;
pub(crate) mod paths;
mod prepared_checkout;
mod results;
mod root;
mod scan;
mod scratch;
mod setup_artifacts;
mod transitions;
mod undo;
mod walk;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use domain::{CommitId, RepositoryName, RunId, cause::format_error_chain};
use git::ExternalContent;
use parking_lot::Mutex;

use adoption::AdoptedFolder;
pub(crate) use change::ChangedFile;
pub(crate) use copy::FileAmount;
use environment::SetupEnvironment;
pub(crate) use history::SnapshotPack;
pub(crate) use hunks::TreeHunk;
pub(crate) use objects::KeepLimits;
use objects::UnstoredFiles;
use omissions::OmittedPaths;
pub(crate) use paths::is_git_folder;
pub(crate) use prepared_checkout::PreparedCheckout;
pub(crate) use results::{MOST_OF_ONE, ResultStore};
pub(crate) use root::{FileKind, FileStat, WorkspaceRoot, explain_path_error};
use scan::StatCache;
pub(crate) use scratch::{ScratchContent, ScratchTree};
pub(crate) use setup_artifacts::WorkspaceOrigin;

use crate::{
    cleanup,
    mirror::MirrorPath,
    parser::ParserClient,
    sandbox::{self, IdleLauncher, PathCover, RunnerClient, RunnerSession},
};

/// Error of a workspace, for the log and for the status of the call.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkspaceError {
    /// The repository lacks the requested object.
    #[error("{0}")]
    NotFound(String),
    /// A snapshot does not fit this workspace.
    #[error("{0}")]
    BadSnapshot(String),
    /// The request does not fit the workspace.
    #[error("{0}")]
    BadRequest(String),
    /// The changes exceed a limit; the same request would fail again.
    #[error("{0}")]
    Unkeepable(String),
    /// The executor's disk is full.
    #[error("the executor's disk is full: {0}")]
    DiskFull(String),
    /// Failure of the disk or of git.
    #[error("{0}")]
    Trouble(String),
}

impl WorkspaceError {
    /// Distinguishes a full disk from other failures by the message, because libgit2 returns no error number.
    fn of_machine(words: String) -> Self {
        if git::is_about_full_disk(&words) {
            Self::DiskFull(words)
        } else {
            Self::Trouble(words)
        }
    }
}

impl From<io::Error> for WorkspaceError {
    fn from(error: io::Error) -> Self {
        Self::of_machine(format_error_chain(&error))
    }
}

impl From<git::Error> for WorkspaceError {
    fn from(error: git::Error) -> Self {
        Self::of_machine(format_error_chain(&error))
    }
}

impl From<git2::Error> for WorkspaceError {
    fn from(error: git2::Error) -> Self {
        Self::of_machine(error.message().to_owned())
    }
}

/// Environment variables that name toolchains. They contain no secret.
const TOOLCHAINS: &[&str] = &["RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "JAVA_HOME", "GOROOT"];

/// Parameters of a new workspace.
#[derive(Clone)]
pub(crate) struct WorkspaceStart {
    pub(crate) run: RunId,
    pub(crate) repository: RepositoryName,
    pub(crate) base: CommitId,
    pub(crate) base_branch: String,
    pub(crate) mirror: MirrorPath,
    /// Commit whose files setup receives first; `None` for the base.
    pub(crate) foundation: Option<CommitId>,
    /// Runner that holds the worktree; `None` for this process.
    pub(crate) runner: Option<RunnerClient>,
    /// Limits of the stored changes.
    pub(crate) limits: KeepLimits,
}

/// Snapshot to restore.
#[derive(Clone)]
pub(crate) struct SnapshotRestore {
    pub(crate) branch: Option<String>,
    pub(crate) head: Option<CommitId>,
    pub(crate) commit: CommitId,
    pub(crate) pack: Vec<u8>,
}

/// Checkout of one run. Dropping it deletes its folder.
pub(crate) struct Workspace {
    pub(crate) id: String,
    pub(crate) run: RunId,
    pub(crate) repository: RepositoryName,
    pub(crate) base: CommitId,
    base_branch: String,
    folder: ScopedFolder,
    mirror: MirrorPath,
    limits: KeepLimits,
    root: WorkspaceRoot,
    scratch: WorkspaceRoot,
    session: Option<Arc<RunnerSession>>,
    /// State for a worktree that existed before and is not deleted.
    adopted: Option<AdoptedFolder>,
    elsewhere: OnceLock<ExternalContent>,
    /// Files that setup created; unset if setup did not run.
    environment: OnceLock<SetupEnvironment>,
    state: Mutex<WorkspaceState>,
    /// Idle launcher for the next command.
    pub(crate) spare: IdleLauncher,
    /// Parser for source files of this workspace.
    pub(crate) parser: ParserClient,
    /// Results that were too long for an answer.
    pub(crate) results: ResultStore,
}

/// State that tools change.
#[derive(Default)]
struct WorkspaceState {
    branch: Option<String>,
    head: Option<CommitId>,
    cache: StatCache,
    /// Files that the last scan omitted.
    omitted: OmittedPaths,
    /// Files that the last scan did not store, because the change is too large.
    excess: UnstoredFiles,
    /// Value of `excess` after the last change.
    seen_excess: UnstoredFiles,
    /// Size of the git directory in bytes, and its size after the last cleanup.
    git_bytes: u64,
    tidied_bytes: u64,
    /// Paths that a tool of the model wrote or a snapshot restored. They belong to the change even at a path
    /// of by-products.
    written: BTreeSet<PathBuf>,
    /// Omitted files of which the model was last notified.
    told: OmittedPaths,
    /// Tree, branch and head after the last scan, for the detection of changes.
    seen: Option<SeenState>,
    /// Files, branch and head before the latest changes, the newest last.
    undo: Vec<SeenState>,
    /// True when the next change is an undo, which is not recorded as a step.
    undone: bool,
    /// Files of `HEAD` and branches that commands see, with their state after the last write.
    shown: Vec<(String, Option<FileStat>)>,
}

/// Tree of all files, the branch and its head.
type SeenState = (git2::Oid, Option<String>, Option<CommitId>);

struct ScopedFolder(PathBuf);

impl Drop for ScopedFolder {
    fn drop(&mut self) {
        if let Err(error) = cleanup::remove_folder(&self.0) {
            tracing::warn!(error = %format_error_chain(&error), "a workspace's folder stays behind");
        }
    }
}

impl Workspace {
    /// Creates a workspace and writes the checkout. Blocks.
    pub(crate) fn create(workspaces: &Path, start: WorkspaceStart) -> Result<Self, WorkspaceError> {
        Self::create_from(workspaces, start, None)
    }

    /// Creates a workspace from a prepared checkout, or from scratch. Blocks.
    pub(crate) fn create_from(
        workspaces: &Path,
        start: WorkspaceStart,
        ready: Option<PreparedCheckout>,
    ) -> Result<Self, WorkspaceError> {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let place = checkout_path::claim_folder(workspaces, &start.repository)?;
        let (folder, files) = match ready {
            Some(ready) => ready
                .move_to(place)
                .map(|(folder, files)| (folder, Some(files)))?,
            None => (ScopedFolder(place), None),
        };
        let session = open_session(start.runner.as_ref(), None)?;
        let (root, scratch) = match &session {
            Some(session) => session_roots(session),
            None => folder_roots(&folder.0)?,
        };
        let workspace = Self {
            id,
            run: start.run,
            repository: start.repository,
            base: start.base,
            base_branch: start.base_branch,
            results: ResultStore::beneath(&folder.0),
            folder,
            mirror: start.mirror,
            limits: start.limits,
            root,
            scratch,
            session,
            adopted: None,
            elsewhere: OnceLock::new(),
            environment: OnceLock::new(),
            state: Mutex::default(),
            spare: IdleLauncher::default(),
            parser: ParserClient::default(),
        };
        workspace.fill(start.foundation, files)?;
        Ok(workspace)
    }

    /// Returns true when the runner that holds the files has closed the connection.
    pub(crate) fn is_lost(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_closed())
    }

    /// Worktree of the workspace.
    pub(crate) fn root(&self) -> &WorkspaceRoot {
        &self.root
    }

    /// Resolves a path that the model wrote, relative to the worktree. Returns an error for a path in a
    /// submodule, whose files are missing.
    pub(crate) fn path(&self, text: &str) -> Result<PathBuf, String> {
        let path = paths::resolve_model_path(self.root.path(), text)?;
        match self.submodule_of(&path) {
            None => Ok(path),
            Some(submodule) => Err(format!(
                "{text:?} lies in the submodule {submodule}, whose files are in another repository and not here. Work without \
                 them; a submodule cannot be changed."
            )),
        }
    }

    fn submodule_of(&self, path: &Path) -> Option<&String> {
        let submodules = &self.elsewhere().submodules;
        submodules.iter().find(|submodule| path.starts_with(submodule))
    }

    /// Content that the base commit names but does not contain: submodules and Git LFS files.
    pub(crate) fn elsewhere(&self) -> &ExternalContent {
        static NOTHING: ExternalContent = ExternalContent {
            submodules: Vec::new(),
            lfs_files: Vec::new(),
        };
        self.elsewhere.get().unwrap_or(&NOTHING)
    }

    /// Resolves the path of an existing file. A part of a path is enough if only one file's path ends in it.
    ///
    /// # Errors
    /// Returns a text for the model: for a path outside of the workspace, or several matching files.
    pub(crate) fn existing(&self, text: &str) -> Result<PathBuf, String> {
        let path = self.path(text)?;
        if path.as_os_str().is_empty() || !matches!(self.root.stat(&path), Ok(None)) {
            return Ok(path);
        }
        let named: Vec<PathBuf> = self
            .paths(fs::FileType::is_file)
            .filter(|file| file.ends_with(&path))
            .take(6)
            .collect();
        match named.as_slice() {
            [] => self.elsewhere_named(path),
            [file] => Ok(file.clone()),
            files => Err(format!(
                "{text:?} names several files: {}. Give a longer path.",
                join_paths(files)
            )),
        }
    }

    /// Returns a path that does not exist. Fails when files of the same name exist in other folders.
    fn elsewhere_named(&self, path: PathBuf) -> Result<PathBuf, String> {
        let of_name: Vec<PathBuf> = self
            .paths(fs::FileType::is_file)
            .filter(|file| file.file_name() == path.file_name())
            .take(6)
            .collect();
        if of_name.is_empty() {
            return Ok(path);
        }
        Err(format!(
            "{} does not exist. Files of that name: {}.",
            path.display(),
            join_paths(&of_name)
        ))
    }

    /// Branch that the run's pull request targets.
    pub(crate) fn base_branch(&self) -> &str {
        &self.base_branch
    }

    /// Returns the branch and its head, if a branch was created.
    pub(crate) fn branch(&self) -> (Option<String>, Option<CommitId>) {
        let state = self.lock();
        (state.branch.clone(), state.head.clone())
    }

    /// Folders that commands may write to.
    pub(crate) fn writable(&self) -> Vec<PathBuf> {
        vec![self.root.path().to_owned(), self.scratch.path().to_owned()]
    }

    /// Folders of the executor that commands may read.
    pub(crate) fn readable(&self) -> Vec<PathBuf> {
        let own = self.adopted.iter().filter(|adopted| !adopted.is_covered());
        let own = own.flat_map(|adopted| adopted.objects.clone());
        [self.git_dir(), self.mirror.join("objects")]
            .into_iter()
            .chain(own)
            .collect()
    }

    /// Paths that commands see differently from this process.
    pub(crate) fn covers(&self) -> Vec<PathCover> {
        self.adopted
            .as_ref()
            .map_or_else(Vec::new, |adopted| adopted.covers.clone())
    }

    /// Folders that must have the same path for commands. Worktree and scratch space share one mount, so that
    /// a file can be renamed between them.
    pub(crate) fn exposed(&self) -> Vec<PathBuf> {
        let own = self
            .session
            .as_ref()
            .map_or(self.folder.0.as_path(), |session| session.folder());
        let root = Some(self.root.path()).filter(|root| !root.starts_with(own));
        [own].into_iter().chain(root).map(Path::to_owned).collect()
    }

    /// Complete environment of commands. It makes git work on this checkout and contains no variable of the
    /// executor itself.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let tmp = self.scratch.path();
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let mut environment = vec![
            ("PATH", path),
            ("HOME", tmp.join("home").into()),
            ("TMPDIR", tmp.into()),
            // Not `LC_ALL`: a shell reads a file for each further category at every start.
            ("LC_CTYPE", "C.UTF-8".into()),
            // The model reads the output, so programs must not print terminal escapes.
            ("TERM", "dumb".into()),
            ("CI", "1".into()),
        ];
        environment.extend(self.git_environment());
        environment.extend(toolchain_variables());
        // The policy is JSON, so a value that is not UTF-8 is left out.
        let texts = environment
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value.into_string().ok()?)));
        texts.collect()
    }

    fn git_dir(&self) -> PathBuf {
        self.folder.0.join("git")
    }

    fn git(&self) -> Result<git::BareRepository, WorkspaceError> {
        Ok(git::BareRepository::open(&self.git_dir())?)
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, WorkspaceState> {
        self.state.lock()
    }
}

fn join_paths(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

fn open_session(
    runner: Option<&RunnerClient>,
    tree: Option<&Path>,
) -> io::Result<Option<Arc<RunnerSession>>> {
    let session = runner.map(|runner| runner.workspace(tree)).transpose();
    let told = |error: io::Error| io::Error::other(format!("the runner: {error}"));
    Ok(session.map_err(told)?.map(Arc::new))
}

fn session_roots(session: &Arc<RunnerSession>) -> (WorkspaceRoot, WorkspaceRoot) {
    let root = |folder| WorkspaceRoot::at_runner(session, folder);
    (
        root(sandbox::WorkspaceFolder::Tree),
        root(sandbox::WorkspaceFolder::Scratch),
    )
}

fn folder_roots(folder: &Path) -> io::Result<(WorkspaceRoot, WorkspaceRoot)> {
    for name in ["tree", "tmp/home"] {
        fs::create_dir_all(folder.join(name))?;
    }
    Ok((
        WorkspaceRoot::open(&folder.join("tree"))?,
        WorkspaceRoot::open(&folder.join("tmp"))?,
    ))
}

/// Variables for toolchains that commands cannot find by `PATH` alone. rustup searches the home folder, which
/// commands do not see.
fn toolchain_variables() -> Vec<(&'static str, OsString)> {
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

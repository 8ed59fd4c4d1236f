//! Checkout in which a run works. The git directory lies outside of the worktree. The worktree is read and
//! written only beneath its folder.

mod adoption;
mod base;
mod byproduct;
mod change;
mod change_size;
mod checkout;
mod commits;
mod conversion;
mod copy;
mod disk;
mod environment;
mod file_scan;
mod folder_guides;
mod folder_stats;
mod git_directory;
mod git_view;
mod hunks;
mod links;
mod merge;
mod objects;
mod omissions;
pub(crate) mod paths;
mod portable_names;
mod prepared_checkout;
mod restoration;
mod results;
mod root;
mod scan;
mod scan_update;
mod scratch;
mod setup_artifacts;
mod stat_cache;
mod survey;
mod tracked_files;
mod tree_change;
mod untracked_files;
mod walk;
mod work_history;

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use domain::{CommitId, RepositoryName, RunId, TicketKey, cause::format_error_chain};
use git2::Oid;

use adoption::AdoptedGit;
pub(crate) use base::find_foundation;
pub(crate) use change::{ChangedFile, WorkspaceChange};
pub(crate) use change_size::KeepLimits;
pub(crate) use commits::SnapshotPack;
use conversion::{ConversionRefusal, find_worktree_conversion};
pub(crate) use copy::FileAmount;
use disk::{ScopedFolder, WorkspaceDisk};
use environment::SetupFiles;
use folder_guides::FolderGuides;
use git_directory::GitDirectory;
use git_view::{GitView, ViewSource};
pub(crate) use hunks::TreeHunk;
pub(crate) use paths::is_git_folder;
pub(crate) use prepared_checkout::PreparedCheckout;
pub(crate) use results::{MAX_RESULT_BYTES, ResultStore};
pub(crate) use root::{FileKind, FileStat, WorkspaceRoot, explain_path_error};
use scan::WorktreeScanner;
pub(crate) use scan_update::ScanScope;
use scan_update::{LazyRepository, ScanInput, ScanRepository};
pub(crate) use scratch::{ScratchContent, ScratchTree};
pub(crate) use setup_artifacts::WorkspaceOrigin;
use stat_cache::StatCache;
use work_history::WorkHistory;

use crate::{
    lfs_contents::LfsContents,
    mirror::MirrorPath,
    parser::ParserClient,
    sandbox::{IdleLauncher, RunnerClient},
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
    /// True when new files may have names that only Linux can hold.
    pub(crate) has_any_names: bool,
    /// Contents of Git LFS files.
    pub(crate) lfs: LfsContents,
}

/// Snapshot to restore.
#[derive(Clone)]
pub(crate) struct SnapshotRestore {
    pub(crate) branch: Option<String>,
    pub(crate) head: Option<CommitId>,
    pub(crate) commit: CommitId,
    pub(crate) pack: Vec<u8>,
}

/// Checkout of one run: the sum of its parts. Dropping it deletes its folder.
pub(crate) struct Workspace {
    pub(crate) id: String,
    pub(crate) run: RunId,
    pub(crate) repository: RepositoryName,
    /// Folders on the disk.
    pub(crate) disk: WorkspaceDisk,
    /// Git directory, and the commit that the work starts from.
    pub(crate) git: GitDirectory,
    /// Branch, and the states before the latest changes.
    pub(crate) history: WorkHistory,
    /// Scans of the worktree.
    pub(crate) scanner: WorktreeScanner,
    /// Repository as git in commands finds it.
    view: GitView,
    /// Files that setup created.
    pub(crate) setup: SetupFiles,
    /// Idle launcher for the next command.
    pub(crate) spare: IdleLauncher,
    /// Parser for source files of this workspace.
    pub(crate) parser: ParserClient,
    /// Results that were too long for an answer.
    pub(crate) results: ResultStore,
    /// Instructions of folders that the model has read.
    pub(crate) guides: FolderGuides,
    is_touched: AtomicBool,
}

impl Workspace {
    /// Creates a workspace from a prepared checkout, or from scratch. Blocks.
    pub(crate) fn create(
        workspaces: &Path,
        start: WorkspaceStart,
        ready: Option<PreparedCheckout>,
    ) -> Result<Self, WorkspaceError> {
        let place = disk::claim_folder(workspaces, &start.repository)?;
        let (folder, files) = match ready {
            Some(ready) => ready
                .move_to(place)
                .map(|(folder, files)| (folder, Some(files)))?,
            None => (ScopedFolder(place), None),
        };
        let mut disk = WorkspaceDisk::open(folder, None, start.runner.as_ref())?;
        disk.has_any_names = start.has_any_names;
        let base = (start.base, start.base_branch);
        let content = (start.limits, start.lfs);
        let git = GitDirectory::new(git_folder(disk.place()), start.mirror, base, content);
        let workspace = Self::new(start.run, start.repository, disk, git);
        checkout::fill_workspace(&workspace, start.foundation, files)?;
        Ok(workspace)
    }

    /// Opens a workspace over `tree`.
    ///
    /// The git directory of `tree` is not written to, and only objects and `HEAD` are read from it. All other
    /// files are in a folder below `workspaces`, which is deleted with the workspace. `can_cover`: commands
    /// have a separate mount namespace. Blocks.
    pub(crate) fn adopt(
        workspaces: &Path,
        tree: &Path,
        runner: Option<&RunnerClient>,
        can_cover: bool,
    ) -> Result<Self, WorkspaceError> {
        let strange = |error: domain::InvalidId| WorkspaceError::Trouble(error.to_string());
        let folder = ScopedFolder(workspaces.join(uuid::Uuid::new_v4().simple().to_string()));
        let disk = WorkspaceDisk::open(folder, Some(tree), runner)?;
        let git_dir = git_folder(disk.place());
        let AdoptedGit {
            repository,
            adopted,
            base,
            base_branch,
            is_new,
        } = AdoptedGit::open(&git_dir, tree, disk.scratch(), can_cover)?;
        let run = RunId::new(TicketKey::jira("LOCAL-1").map_err(strange)?, 1);
        let name: RepositoryName = "local/folder".parse().map_err(strange)?;
        let git = GitDirectory::adopt(git_dir, (base, base_branch), adopted);
        let mut workspace = Self::new(run, name, disk, git);
        // The files belong to the user.
        workspace.mark_touched();
        if is_new {
            let files = workspace.tree(repository.objects())?;
            workspace.git.base = adoption::commit_base(&repository, files)?;
        }
        let (base, base_branch) = (&workspace.git.base, &workspace.git.base_branch);
        repository.set_branch(base_branch, base)?;
        repository
            .objects()
            .set_head(&format!("refs/heads/{base_branch}"))?;
        workspace.write_index(&repository)?;
        Ok(workspace)
    }

    fn new(run: RunId, repository: RepositoryName, disk: WorkspaceDisk, git: GitDirectory) -> Self {
        Self {
            id: uuid::Uuid::new_v4().simple().to_string(),
            run,
            repository,
            results: ResultStore::beneath(disk.place()),
            disk,
            git,
            history: WorkHistory::default(),
            scanner: WorktreeScanner::default(),
            view: GitView::default(),
            setup: SetupFiles::default(),
            spare: IdleLauncher::default(),
            parser: ParserClient::default(),
            guides: FolderGuides::default(),
            is_touched: AtomicBool::new(false),
        }
    }

    /// Records that the files may differ from a fresh checkout from now on: a command, a tool, a check or a snapshot begins,
    /// or a state is restored.
    pub(crate) fn mark_touched(&self) {
        self.is_touched.store(true, Ordering::Relaxed);
    }

    /// Returns true when the files may differ from a fresh checkout.
    pub(crate) fn is_touched(&self) -> bool {
        self.is_touched.load(Ordering::Relaxed)
    }

    /// Worktree of the workspace.
    pub(crate) fn root(&self) -> &WorkspaceRoot {
        self.disk.root()
    }

    /// Refuses a content that Git LFS would have to upload, for a new file and for one of the last commit. A scan refuses
    /// what commands write there.
    ///
    /// # Errors
    /// Returns a text for the model.
    pub(crate) fn refuse_lfs_content(&self, path: &Path, content: &[u8]) -> Result<(), String> {
        let is_lfs = self.disk.has_lfs_content(path)
            || find_worktree_conversion(self.root(), path).is_some_and(|conversion| conversion.is_lfs);
        let lfs = &self.git.lfs;
        if !is_lfs || lfs.can_commit(content) || lfs.clean(content).is_some() {
            return Ok(());
        }
        Err(format!(
            "{}: {}. Nothing was written.",
            path.display(),
            ConversionRefusal::LfsContent
        ))
    }

    /// Builds the tree of the current files. An unreadable file is omitted and recorded.
    fn tree(&self, git: &git2::Repository) -> Result<Oid, WorkspaceError> {
        let head = self.head_or_base();
        let input = self.scan_input(ScanRepository::Open(git), &head);
        self.scanner.scan(input, ScanScope::Worktree)
    }

    /// Builds the tree of the files, of which only those in the scope may have changed. The repository is opened if
    /// some have.
    fn scan_tree(&self, repository: &LazyRepository, scope: ScanScope) -> Result<Oid, WorkspaceError> {
        let head = self.head_or_base();
        let input = self.scan_input(ScanRepository::Lazy(repository), &head);
        self.scanner.scan(input, scope)
    }

    /// Repository of the git directory, which is opened at its first use.
    fn lazy_repository(&self) -> LazyRepository {
        LazyRepository::at(self.git.path())
    }

    /// Records the files that a checkout of the head wrote.
    fn begin_scans(&self, git: &git2::Repository, cache: StatCache) -> Result<(), WorkspaceError> {
        let head = self.head_or_base();
        let input = self.scan_input(ScanRepository::Open(git), &head);
        self.scanner.begin(input, cache)
    }

    fn scan_input<'a>(&'a self, repository: ScanRepository<'a>, head: &'a CommitId) -> ScanInput<'a> {
        ScanInput {
            disk: &self.disk,
            repository,
            head,
            objects: &self.git.objects,
            lfs: &self.git.lfs,
        }
    }

    /// Removes obstacles to git that the last command may have left. Returns true when the command moved
    /// `HEAD` or a branch. Blocks.
    pub(crate) fn clear_git_obstacles(&self) -> bool {
        self.view.clear_obstacles(self.view_source())
    }

    /// Writes the index that git in commands reads.
    fn write_index(&self, repository: &git::BareRepository) -> Result<(), WorkspaceError> {
        let index = self.git.index_of(repository, &self.head_or_base())?;
        self.view.show(self.view_source(), Some(index))
    }

    fn view_source(&self) -> ViewSource<'_> {
        ViewSource {
            run: &self.run,
            disk: &self.disk,
            git: &self.git,
            history: &self.history,
        }
    }

    /// Complete environment of commands. It makes git work on this checkout and contains no variable of the
    /// executor itself.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let mut environment = vec![
            ("PATH", path),
            ("HOME", self.disk.home().into()),
            ("TMPDIR", self.disk.scratch().path().into()),
            // Not `LC_ALL`: a shell reads a file for each further category at every start.
            ("LC_CTYPE", "C.UTF-8".into()),
            // The model reads the output, so programs must not print terminal escapes.
            ("TERM", "dumb".into()),
            ("CI", "1".into()),
        ];
        environment.extend(self.view_source().variables());
        environment.extend(toolchain_variables());
        // The policy is JSON, so a value that is not UTF-8 is left out.
        let texts = environment
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value.into_string().ok()?)));
        texts.collect()
    }
}

/// Returns the path of the git directory in a workspace's folder.
fn git_folder(place: &Path) -> PathBuf {
    place.join("git")
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Commits a tree on top of a commit; no branch moves.
    pub(super) fn commit_tree(git: &git2::Repository, tree: Oid, parent: Option<&CommitId>) -> CommitId {
        let parent = parent.map(|id| git.find_commit(Oid::from_str(id.as_str()).unwrap()).unwrap());
        let parents: Vec<_> = parent.iter().collect();
        let tree = git.find_tree(tree).unwrap();
        let who = git2::Signature::new("A", "a@acme.example", &git2::Time::new(2, 0)).unwrap();
        let id = git.commit(None, &who, &who, "x", &tree, &parents).unwrap();
        id.to_string().parse().unwrap()
    }

    impl ChangedFile {
        pub(crate) fn sample(path: &str, before: Option<&str>, after: Option<&str>) -> Self {
            Self {
                path: path.to_owned(),
                before: before.map(str::to_owned),
                after: after.map(str::to_owned),
            }
        }
    }

    impl WorkspaceStart {
        /// Parameters of a test's workspace, with the mirror in the test's folder.
        pub(crate) fn sample(folder: &Path, base: CommitId) -> Self {
            Self {
                run: RunId::new(TicketKey::jira("ENG-12").unwrap(), 1),
                repository: "acme/shop".parse().unwrap(),
                base,
                base_branch: "main".to_owned(),
                mirror: folder.join("mirror").into(),
                foundation: None,
                runner: None,
                limits: KeepLimits::default(),
                has_any_names: false,
                lfs: LfsContents::default(),
            }
        }
    }
}

//! Git directory of a workspace. It lies outside of the worktree, and commands can only read it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use domain::{CommitId, ConflictFile, RepositoryName, cause::format_error_chain};
use git::BareRepository;
use git2::Oid;

use super::{
    SnapshotRestore, WorkspaceError, adoption::AdoptedFolder, change_size::KeepLimits, disk::VIEW,
    objects::ObjectStore,
};
use crate::{lfs_contents::LfsContents, mirror::MirrorPath, sandbox::PathCover};

/// Messages of git when it cannot write.
const REFUSALS: [&str; 4] = [
    "Read-only file system",
    "Permission denied",
    "insufficient permission",
    "unable to create",
];
/// Messages of git when a remote is missing.
const NO_REMOTE: [&str; 4] = [
    "No configured push destination",
    "No remote repository specified",
    "There is no tracking information for the current branch",
    "does not appear to be a git repository",
];

/// File of git with the boundary of the history.
pub(super) const BOUNDARY: &str = "shallow";
/// Commands of git that read history.
const HISTORY_COMMANDS: [&str; 7] = [
    "log", "blame", "annotate", "shortlog", "bisect", "describe", "rev-list",
];

/// Git directory of a workspace, with the commit that the work starts from.
pub(crate) struct GitDirectory {
    path: PathBuf,
    pub(super) mirror: MirrorPath,
    pub(crate) base: CommitId,
    /// Branch that the run's pull request targets.
    pub(crate) base_branch: String,
    /// State for a worktree that existed before and is not deleted.
    adopted: Option<AdoptedFolder>,
    pub(crate) objects: ObjectStore,
    /// Contents of Git LFS files.
    pub(crate) lfs: LfsContents,
    /// Merge of a pull request into the base; empty for other work.
    merge: OnceLock<WorkspaceMerge>,
}

/// Merge of a pull request's head into the base, as the files begin.
#[derive(Debug)]
pub(crate) struct WorkspaceMerge {
    /// Head of the pull request.
    pub(crate) head: CommitId,
    /// Files that git cannot merge.
    pub(crate) conflicts: Vec<ConflictFile>,
}

impl GitDirectory {
    /// Describes the git directory of a new workspace.
    pub(super) fn new(
        path: PathBuf,
        mirror: MirrorPath,
        (base, base_branch): (CommitId, String),
        (limits, lfs): (KeepLimits, LfsContents),
    ) -> Self {
        Self {
            objects: ObjectStore::new(&path, limits),
            lfs,
            path,
            mirror,
            base,
            base_branch,
            adopted: None,
            merge: OnceLock::new(),
        }
    }

    /// Describes the git directory of a worktree that existed before. It is its own mirror.
    pub(super) fn adopt(
        path: PathBuf,
        (base, base_branch): (CommitId, String),
        adopted: AdoptedFolder,
    ) -> Self {
        Self {
            mirror: path.clone().into(),
            objects: ObjectStore::new(&path, KeepLimits::default()),
            lfs: LfsContents::of_user_folder(),
            path,
            base,
            base_branch,
            adopted: Some(adopted),
            merge: OnceLock::new(),
        }
    }

    /// Returns the merge that the work resolves; `None` for other work.
    pub(crate) fn merge(&self) -> Option<&WorkspaceMerge> {
        self.merge.get()
    }

    /// Records the merge that the work resolves.
    pub(super) fn set_merge(&self, merge: WorkspaceMerge) -> Result<(), WorkspaceError> {
        self.merge
            .set(merge)
            .map_err(|_| WorkspaceError::BadRequest("the workspace has a merge already".to_owned()))
    }

    /// Returns the parents of the first commit of the work. The head of the pull request comes first, so that its
    /// branch continues.
    pub(super) fn first_parents(&self) -> Vec<CommitId> {
        let merged = self.merge().map(|merge| merge.head.clone());
        merged.into_iter().chain([self.base.clone()]).collect()
    }

    /// Creates the directory. The mirror is its alternate, so no object is copied.
    pub(super) fn create(&self) -> Result<(), WorkspaceError> {
        BareRepository::init_bare(&self.path)?;
        let info = self.path.join("objects/info");
        fs::create_dir_all(&info)?;
        let objects = self.mirror.join("objects");
        Ok(fs::write(
            info.join("alternates"),
            format!("{}\n", objects.display()),
        )?)
    }

    /// Takes over the mirror's boundary of the history, without which git would miss the parents of its commits.
    pub(super) fn copy_boundary(&self) -> Result<(), WorkspaceError> {
        Ok(BareRepository::copy_boundary(&self.mirror, &self.path)?)
    }

    /// Returns the content of git's file about the boundary of the history; `None` for complete history.
    pub(super) fn boundary_file(&self) -> Option<Vec<u8>> {
        fs::read(self.path.join(BOUNDARY)).ok()
    }

    /// Returns true when a command reads history of which older commits are missing.
    pub(crate) fn lacks_history_of(&self, command: &str) -> bool {
        let mut words = command.split_whitespace().skip_while(|word| *word != "git");
        words.any(|word| HISTORY_COMMANDS.contains(&word)) && self.path.join(BOUNDARY).exists()
    }

    pub(super) fn open(&self) -> Result<BareRepository, WorkspaceError> {
        Ok(BareRepository::open(&self.path)?)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails when the base commit is missing.
    pub(super) fn require_base(
        &self,
        repository: &BareRepository,
        name: &RepositoryName,
    ) -> Result<(), WorkspaceError> {
        if repository.contains(&self.base) {
            return Ok(());
        }
        Err(WorkspaceError::NotFound(format!(
            "commit {} is not in {name}",
            self.base.short()
        )))
    }

    /// Returns true for a worktree that existed before.
    pub(super) const fn is_adopted(&self) -> bool {
        self.adopted.is_some()
    }

    /// Returns true when only variables make git in commands use its view: the folder's own `.git` must not
    /// change, and without a mount namespace nothing can cover it.
    pub(super) fn needs_variables(&self) -> bool {
        self.adopted.as_ref().is_some_and(|adopted| !adopted.is_covered())
    }

    /// Folders of the executor that commands may read.
    pub(crate) fn readable(&self) -> Vec<PathBuf> {
        let own = self.adopted.iter().filter(|adopted| !adopted.is_covered());
        let own = own.flat_map(|adopted| adopted.objects.clone());
        [self.path.clone(), self.mirror.join("objects")]
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

    /// Object folders that commands may read. All are listed directly, because the paths in the real git
    /// directory's own alternates may not exist for commands.
    pub(super) fn object_folders(&self) -> Vec<PathBuf> {
        match &self.adopted {
            Some(adopted) if !adopted.objects.is_empty() => adopted.objects.clone(),
            _ => [self.path.as_path(), &*self.mirror]
                .map(|place| place.join("objects"))
                .to_vec(),
        }
    }

    /// Returns true when a command's output shows that git could not write to this repository or lacked a
    /// remote.
    pub(crate) fn is_refused_in(&self, output: &str) -> bool {
        let git_dir = self.path.display().to_string();
        let git_dir = git_dir.as_str();
        output.lines().any(|line| {
            let is_ours = [git_dir, VIEW, "repository database", "temporary file"]
                .iter()
                .any(|place| line.contains(*place));
            let is_refused = is_ours && REFUSALS.iter().any(|refusal| line.contains(refusal));
            is_refused || NO_REMOTE.iter().any(|missing| line.contains(missing))
        })
    }

    /// Returns the tree of the base commit.
    pub(super) fn base_tree(&self, git: &git2::Repository) -> Result<Oid, WorkspaceError> {
        tree_of(git, &self.base)
    }

    /// Builds the index of a commit. It is written to a path that commands cannot reach and then copied,
    /// because libgit2 would follow a symbolic link at the final path.
    pub(super) fn index_of(
        &self,
        repository: &BareRepository,
        commit: &CommitId,
    ) -> Result<Vec<u8>, WorkspaceError> {
        let git = repository.objects();
        let tree = git.find_commit(Oid::from_str(commit.as_str())?)?.tree()?;
        let place = self.path.join("index.new");
        let mut index = git2::Index::open(&place)?;
        index.read_tree(&tree)?;
        self.assume_unchanged(repository, commit, &mut index)?;
        index.write()?;
        let bytes = fs::read(&place)?;
        fs::remove_file(&place)?;
        Ok(bytes)
    }

    /// Marks files of Git LFS whose content is in the worktree, because git in commands compares it with the pointer.
    fn assume_unchanged(
        &self,
        repository: &BareRepository,
        commit: &CommitId,
        index: &mut git2::Index,
    ) -> Result<(), WorkspaceError> {
        if self.lfs.is_off() {
            return Ok(());
        }
        let files = repository.lfs_files(commit)?;
        for file in files.iter().filter(|file| self.lfs.has(&file.pointer)) {
            if let Some(mut entry) = index.get_path(Path::new(&file.path), 0) {
                entry.flags |= git2::IndexEntryFlag::VALID.bits();
                index.add(&entry)?;
            }
        }
        Ok(())
    }

    /// Imports a snapshot's objects and sets its branch.
    pub(super) fn import(
        &self,
        repository: &BareRepository,
        restore: &SnapshotRestore,
    ) -> Result<(), WorkspaceError> {
        let bad = |error: git::Error| WorkspaceError::BadSnapshot(format_error_chain(&error));
        repository
            .import_pack(&restore.pack, git::PackLimits::default())
            .map_err(bad)?;
        if !repository
            .is_descendant(&restore.commit, &self.base)
            .map_err(bad)?
        {
            return Err(WorkspaceError::BadSnapshot(
                "the snapshot does not start at the base commit".to_owned(),
            ));
        }
        if let Some(branch) = &restore.branch {
            let head = restore.head.as_ref().unwrap_or(&self.base);
            repository.set_branch(branch, head).map_err(bad)?;
            repository.objects().set_head(&format!("refs/heads/{branch}"))?;
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn parents(&self, commit: &CommitId) -> Vec<CommitId> {
        let repository = self.open().unwrap();
        let commit = repository
            .objects()
            .find_commit(Oid::from_str(commit.as_str()).unwrap())
            .unwrap();
        commit
            .parent_ids()
            .map(|id| id.to_string().parse().unwrap())
            .collect()
    }
}

/// Returns the tree of a commit.
pub(super) fn tree_of(git: &git2::Repository, commit: &CommitId) -> Result<Oid, WorkspaceError> {
    Ok(git.find_commit(Oid::from_str(commit.as_str())?)?.tree_id())
}

//! Repository in a folder on a user's machine, with a working tree of the user.
//!
//! Only the library accesses it: unlike `git`, it runs neither hooks nor programs from the folder's
//! configuration.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use domain::{CommitAuthor, CommitId};
use git2::{Oid, Status, StatusOptions, build::CheckoutBuilder};

use crate::{
    BareRepository, Error, GitTransport, PushResult, find_conflicting_branch,
    repository::{convert_commit_id, disable_system_gitconfig},
    unusable::discover_repository,
};

// Branch name in our mirror for a detached head.
const DETACHED: &str = "detached";
// Larger changes are not written into a folder, in bytes.
const MAX_PACK_BYTES: usize = 512 * 1024 * 1024;

/// Folder with a repository. Every method blocks; not `Sync`, so it is not shared between threads.
pub struct FolderRepository {
    git: git2::Repository,
}

/// Bare repository over a folder's objects, deleted on drop.
#[derive(Debug)]
pub struct FolderView {
    place: tempfile::TempDir,
    objects: PathBuf,
}

impl FolderView {
    /// Opens the repository with the folder's objects.
    ///
    /// # Errors
    /// [`Error::Failed`] when the repository cannot be read.
    pub fn open(&self) -> Result<BareRepository, Error> {
        BareRepository::open_with_objects(self.place.path(), &self.objects)
    }

    /// Transport that pushes from this view.
    pub fn transport(&self) -> GitTransport {
        GitTransport::new(self.place.path()).with_objects_of(&self.objects)
    }
}

/// Start of work on a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderHead {
    /// Branch that is checked out; `detached` for a detached head.
    pub branch: String,
    /// Commit of the head.
    pub commit: CommitId,
}

impl FolderHead {
    /// Name of the head for git commands in the folder: the branch, or the short commit of a detached head.
    pub fn revision(&self) -> &str {
        match self.branch.as_str() {
            DETACHED => self.commit.short(),
            branch => branch,
        }
    }
}

impl FolderRepository {
    /// Opens the repository that contains a path: its root, or any folder below.
    ///
    /// # Errors
    /// [`Error::NotFound`] without a repository, [`Error::Unusable`] for one of another format or another user,
    /// [`Error::Failed`] for a shallow clone.
    pub fn open(path: &Path) -> Result<Self, Error> {
        disable_system_gitconfig()?;
        let git = discover_repository(path)?;
        if git.is_shallow() {
            return Err(Error::Failed(
                "its history is not complete: run git fetch --unshallow there".into(),
            ));
        }
        Ok(Self { git })
    }

    /// Root of the working tree; of a bare repository its own folder.
    pub fn path(&self) -> PathBuf {
        let root = self.git.workdir().unwrap_or_else(|| self.git.path());
        // `components` drops the trailing slash of the library's path.
        root.components().collect()
    }

    /// Reads the head of the folder.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository has no commit.
    pub fn head(&self) -> Result<FolderHead, Error> {
        let unborn = |source| Error::Missing {
            what: "a first commit".to_owned(),
            source: Some(source),
        };
        let head = self.git.head().map_err(unborn)?;
        let branch = if head.is_branch() {
            head.shorthand().unwrap_or(DETACHED).to_owned()
        } else {
            DETACHED.to_owned()
        };
        let commit = convert_commit_id(head.peel_to_commit()?.id())?;
        Ok(FolderHead { branch, commit })
    }

    /// Reads the commit at the head of a branch; `None` when the branch is missing.
    ///
    /// # Errors
    /// [`Error::Failed`] when the repository cannot be read.
    pub fn branch_head(&self, branch: &str) -> Result<Option<CommitId>, Error> {
        match self.git.refname_to_id(&format_branch_ref(branch)) {
            Ok(id) => convert_commit_id(id).map(Some),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the author of commits from git's settings of the folder or user. `None` when name or address is
    /// not set, or git is missing.
    pub fn commit_author(&self) -> Option<CommitAuthor> {
        // The library ignores the user's settings in this process, see `disable_system_gitconfig`.
        let read = |key: &str| {
            let mut command = std::process::Command::new("git");
            command
                .arg("-C")
                .arg(self.git.path())
                .args(["config", "--get", key]);
            let output = command.stdin(std::process::Stdio::null()).output().ok()?;
            let text = String::from_utf8(output.stdout).ok()?;
            output.status.success().then(|| text.trim().to_owned())
        };
        format!("{} <{}>", read("user.name")?, read("user.email")?)
            .parse()
            .ok()
    }

    /// URL of the remote `origin`.
    pub fn origin(&self) -> Option<String> {
        let remote = self.git.find_remote("origin").ok()?;
        remote.url().map(str::to_owned).ok()
    }

    /// Creates a bare repository that reads the folder's objects in place. The folder's configuration does
    /// not apply to it, and cannot redirect a push or run a program.
    ///
    /// # Errors
    /// [`Error::Failed`] when the disk cannot be written.
    pub fn view(&self) -> Result<FolderView, Error> {
        let place = tempfile::tempdir()?;
        BareRepository::init_bare(place.path())?;
        let objects = std::path::absolute(self.git.commondir())?.join("objects");
        Ok(FolderView { place, objects })
    }

    /// Creates a bare repository at `path` that reads the folder's objects by an alternate. The caller keeps
    /// the repository and prevents other writers. The folder's configuration does not apply to it.
    ///
    /// # Errors
    /// [`Error::Failed`] when the disk cannot be written.
    pub fn view_at(&self, path: &Path) -> Result<BareRepository, Error> {
        let view = BareRepository::init_bare(path)?;
        let objects = std::path::absolute(self.git.commondir())?.join("objects");
        std::fs::write(
            path.join("objects/info/alternates"),
            format!("{}\n", objects.display()),
        )?;
        view.objects().odb()?.refresh()?;
        Ok(view)
    }

    /// Counts the tracked files that differ from the head.
    ///
    /// # Errors
    /// [`Error::Failed`] when the folder cannot be read.
    pub fn uncommitted(&self) -> Result<usize, Error> {
        if self.git.is_bare() {
            return Ok(0);
        }
        let mut options = StatusOptions::new();
        // The status must not write the user's index, thus no update or refresh.
        options
            .include_untracked(false)
            .include_ignored(false)
            .exclude_submodules(true)
            .update_index(false)
            .no_refresh(true);
        let statuses = self.git.statuses(Some(&mut options))?;
        let known = |status: Status| !status.intersects(Status::IGNORED | Status::WT_NEW);
        Ok(statuses.iter().filter(|entry| known(entry.status())).count())
    }

    /// Copies the head and its history into a mirror, with the names of all branches. No other branch is
    /// read.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository has no commit, [`Error::Failed`] when the folder or mirror
    /// cannot be used.
    pub fn fetch_into(&self, mirror: &BareRepository) -> Result<(), Error> {
        let head = self.head()?;
        if !mirror.contains(&head.commit) {
            let address = self.git.path().to_string_lossy();
            let mut remote = mirror.objects().remote_anonymous(&address)?;
            let mut options = git2::FetchOptions::new();
            options.download_tags(git2::AutotagOption::None);
            options.update_fetchhead(false);
            let wanted = format!("+HEAD:{}", format_branch_ref(&head.branch));
            remote.fetch(&[wanted], Some(&mut options), None)?;
            mirror.objects().odb()?.refresh()?;
        }
        mirror.set_branch(&head.branch, &head.commit)?;
        mirror.set_taken(&self.branches()?, &head.commit)
    }

    /// Copies a commit of the mirror, which descends from `base`, and sets a branch to it.
    ///
    /// The branch must be at `expected` (`None`: missing). Working tree, index and head stay unchanged.
    ///
    /// # Errors
    /// [`Error::LeaseStale`] when the branch is at another commit, [`Error::BranchNotWritable`] when it is checked
    /// out, [`Error::BranchInTheWay`], [`Error::Unavailable`] when its lock is held, [`Error::Failed`].
    pub fn write_branch(
        &self,
        mirror: &BareRepository,
        branch: &str,
        [base, head]: [&CommitId; 2],
        expected: Option<&CommitId>,
    ) -> Result<PushResult, Error> {
        let now = self.branch_head(branch)?;
        if now.as_ref() == Some(head) {
            return Ok(PushResult::UpToDate);
        }
        if now.as_ref() != expected {
            return Err(Error::LeaseStale(format!("{branch} is somewhere else")));
        }
        self.refuse_checked_out(branch)?;
        if now.is_none() {
            self.refuse_name_conflict(branch)?;
        }
        // The objects come first: a branch must never point to a missing commit.
        self.copy(mirror, base, head)?;
        let (name, id) = (format_branch_ref(branch), Oid::from_str(head.as_str())?);
        let written = match expected {
            None => self.git.reference(&name, id, false, "journeyman"),
            Some(expected) => {
                let expected = Oid::from_str(expected.as_str())?;
                self.git
                    .reference_matching(&name, id, true, expected, "journeyman")
            }
        };
        match written {
            Ok(_) => Ok(PushResult::Updated),
            Err(error) if matches!(error.code(), git2::ErrorCode::Exists | git2::ErrorCode::Modified) => {
                Err(Error::LeaseStale(error.message().to_owned()))
            }
            Err(error) => {
                // A conflicting branch may have been created meanwhile; otherwise the repository refuses the
                // name.
                self.refuse_name_conflict(branch)?;
                if error.code() == git2::ErrorCode::Locked {
                    Err(Error::Unavailable(error.message().to_owned()))
                } else {
                    Err(Error::BranchNotWritable {
                        branch: branch.to_owned(),
                        reason: error.message().to_owned(),
                    })
                }
            }
        }
    }

    /// Lists the names of the folder's branches.
    ///
    /// # Errors
    /// [`Error::Failed`] when the repository cannot be read.
    pub fn branches(&self) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        for reference in self.git.references_glob("refs/heads/*")? {
            let reference = reference?;
            let name = reference.name()?.strip_prefix("refs/heads/");
            names.extend(name.map(str::to_owned));
        }
        Ok(names)
    }

    fn refuse_name_conflict(&self, branch: &str) -> Result<(), Error> {
        let there = self.branches()?;
        match find_conflicting_branch(branch, there.iter().map(String::as_str)) {
            Some(by) => Err(Error::BranchInTheWay {
                branch: branch.to_owned(),
                by: by.to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// Checks out a branch: working tree, index and head.
    ///
    /// # Errors
    /// [`Error::CheckoutRefused`] when it would overwrite a changed file; nothing is changed then.
    pub fn check_out(&self, branch: &str) -> Result<(), Error> {
        let name = format_branch_ref(branch);
        let commit = self.git.find_reference(&name)?.peel_to_commit()?;
        let mut options = CheckoutBuilder::new();
        options.safe();
        self.git
            .checkout_tree(commit.as_object(), Some(&mut options))
            .map_err(|error| Error::CheckoutRefused {
                branch: branch.to_owned(),
                reason: error.message().to_owned(),
            })?;
        Ok(self.git.set_head(&name)?)
    }

    fn refuse_checked_out(&self, branch: &str) -> Result<(), Error> {
        let found = self.git.find_branch(branch, git2::BranchType::Local);
        if found.is_ok_and(|found| found.is_head()) {
            Err(Error::BranchNotWritable {
                branch: branch.to_owned(),
                reason: "it is checked out".to_owned(),
            })
        } else {
            Ok(())
        }
    }

    fn copy(&self, mirror: &BareRepository, base: &CommitId, head: &CommitId) -> Result<(), Error> {
        let pack = mirror.pack(
            std::slice::from_ref(head),
            std::slice::from_ref(base),
            MAX_PACK_BYTES,
        )?;
        let objects = self.git.odb()?;
        let mut writer = objects.packwriter()?;
        writer.write_all(&pack)?;
        writer.commit()?;
        Ok(())
    }
}

fn format_branch_ref(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

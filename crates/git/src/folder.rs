//! A repository in a folder of somebody's machine, with a working tree that is theirs.
//!
//! All of it is done by the library: it runs neither hooks nor programs that the folder's configuration names, as `git` would.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use domain::{CommitAuthor, CommitId};
use git2::{Oid, Status, StatusOptions, build::CheckoutBuilder};

use crate::{
    Error, Pushed, Repository, Transport, branch_in_the_way,
    repository::{commit_id, ignore_settings_of_the_machine},
};

/// The name in our mirror of a head that is on no branch.
const DETACHED: &str = "detached";
/// A change above this is not written into a folder, in bytes.
const MAX_PACK_BYTES: usize = 512 * 1024 * 1024;

/// A folder that holds a repository. Every method blocks; not to be shared between threads.
pub struct Folder {
    git: git2::Repository,
}

/// A bare repository over a folder's objects. It goes on drop.
#[derive(Debug)]
pub struct FolderView {
    place: tempfile::TempDir,
    objects: PathBuf,
}

impl FolderView {
    /// The repository.
    ///
    /// # Errors
    /// [`Error::Failed`] when it cannot be read.
    pub fn open(&self) -> Result<Repository, Error> {
        Repository::open_with_objects(self.place.path(), &self.objects)
    }

    /// Its way to a remote.
    pub fn transport(&self) -> Transport {
        Transport::new(self.place.path()).with_objects_of(&self.objects)
    }
}

/// Where work on a folder starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderHead {
    /// The branch that is checked out; `detached` when none is.
    pub branch: String,
    /// The commit.
    pub commit: CommitId,
}

impl Folder {
    /// Opens the repository that a path is in: its root, or any folder beneath.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none, or one that this user may not use; [`Error::Failed`] when its history is not
    /// complete.
    pub fn open(path: &Path) -> Result<Self, Error> {
        ignore_settings_of_the_machine()?;
        let git =
            git2::Repository::discover(path).map_err(|error| Error::NotFound(error.message().to_owned()))?;
        if git.is_shallow() {
            return Err(Error::Failed(
                "its history is not complete: run git fetch --unshallow there".into(),
            ));
        }
        Ok(Self { git })
    }

    /// The root of its working tree; of a bare repository the repository itself.
    pub fn path(&self) -> PathBuf {
        let root = self.git.workdir().unwrap_or_else(|| self.git.path());
        // Without the slash that the library puts at its end.
        root.components().collect()
    }

    /// What is checked out.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is no commit yet.
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
        let commit = commit_id(head.peel_to_commit()?.id())?;
        Ok(FolderHead { branch, commit })
    }

    /// The commit that a branch is at.
    ///
    /// # Errors
    /// [`Error::Failed`] when the repository cannot be read.
    pub fn branch_head(&self, branch: &str) -> Result<Option<CommitId>, Error> {
        match self.git.refname_to_id(&reference(branch)) {
            Ok(id) => commit_id(id).map(Some),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The author of commits as git's own settings name it, for this folder or for the user; absent: one of both is not set, or
    /// git is not there.
    pub fn commit_author(&self) -> Option<CommitAuthor> {
        // The library reads no settings of the user here.
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

    /// The address of the remote `origin`.
    pub fn origin(&self) -> Option<String> {
        let remote = self.git.find_remote("origin").ok()?;
        remote.url().map(str::to_owned).ok()
    }

    /// A bare repository that reads the folder's objects where they are. It has none of the folder's configuration, so
    /// nothing in that decides where a push goes or what runs on the way.
    ///
    /// # Errors
    /// [`Error::Failed`] when the disk refuses.
    pub fn view(&self) -> Result<FolderView, Error> {
        let place = tempfile::tempdir()?;
        Repository::init_bare(place.path())?;
        let objects = std::path::absolute(self.git.commondir())?.join("objects");
        Ok(FolderView { place, objects })
    }

    /// A bare repository at `path` that reads the folder's objects by an alternate of its own, for a caller that keeps the
    /// repository and lets nobody else write into it. It has none of the folder's configuration.
    ///
    /// # Errors
    /// [`Error::Failed`] when the disk refuses.
    pub fn view_at(&self, path: &Path) -> Result<Repository, Error> {
        let view = Repository::init_bare(path)?;
        let objects = std::path::absolute(self.git.commondir())?.join("objects");
        std::fs::write(
            path.join("objects/info/alternates"),
            format!("{}\n", objects.display()),
        )?;
        view.objects().odb()?.refresh()?;
        Ok(view)
    }

    /// How many files that git knows differ from what is checked out.
    ///
    /// # Errors
    /// [`Error::Failed`] when the folder cannot be read.
    pub fn uncommitted(&self) -> Result<usize, Error> {
        if self.git.is_bare() {
            return Ok(0);
        }
        let mut options = StatusOptions::new();
        // Writing the index would be a change too.
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

    /// Brings the head and its history into a mirror, and the names of all branches. No other branch of the folder is read.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is no commit yet, [`Error::Failed`] when either cannot be used.
    pub fn fetch_into(&self, mirror: &Repository) -> Result<(), Error> {
        let head = self.head()?;
        if !mirror.contains(&head.commit) {
            let address = self.git.path().to_string_lossy();
            let mut remote = mirror.objects().remote_anonymous(&address)?;
            let mut options = git2::FetchOptions::new();
            options.download_tags(git2::AutotagOption::None);
            options.update_fetchhead(false);
            let wanted = format!("+HEAD:{}", reference(&head.branch));
            remote.fetch(&[wanted], Some(&mut options), None)?;
            mirror.objects().odb()?.refresh()?;
        }
        mirror.set_branch(&head.branch, &head.commit)?;
        mirror.set_taken(&self.branches()?, &head.commit)
    }

    /// Copies a commit of the mirror, which descends from `base`, and sets a branch to it, but only if the branch is at
    /// `expected` (absent: if it does not exist). Working tree, index and head stay as they are.
    ///
    /// # Errors
    /// [`Error::LeaseStale`] when the branch is elsewhere, [`Error::Rejected`] when it is checked out, [`Error::Failed`].
    pub fn write_branch(
        &self,
        mirror: &Repository,
        branch: &str,
        [base, head]: [&CommitId; 2],
        expected: Option<&CommitId>,
    ) -> Result<Pushed, Error> {
        let now = self.branch_head(branch)?;
        if now.as_ref() == Some(head) {
            return Ok(Pushed::UpToDate);
        }
        if now.as_ref() != expected {
            return Err(Error::LeaseStale(format!("{branch} is somewhere else")));
        }
        self.refuse_checked_out(branch)?;
        if now.is_none() {
            self.refuse_name_conflict(branch)?;
        }
        self.copy(mirror, base, head)?;
        let (name, id) = (reference(branch), Oid::from_str(head.as_str())?);
        let written = match expected {
            None => self.git.reference(&name, id, false, "journeyman"),
            Some(expected) => {
                let expected = Oid::from_str(expected.as_str())?;
                self.git
                    .reference_matching(&name, id, true, expected, "journeyman")
            }
        };
        match written {
            Ok(_) => Ok(Pushed::Updated),
            Err(error) if matches!(error.code(), git2::ErrorCode::Exists | git2::ErrorCode::Modified) => {
                Err(Error::LeaseStale(error.message().to_owned()))
            }
            Err(error) => {
                // Somebody made a branch in the way meanwhile, or the name is one that this repository cannot have.
                self.refuse_name_conflict(branch)?;
                match error.code() {
                    git2::ErrorCode::Locked => Err(Error::Unavailable(error.message().to_owned())),
                    _ => Err(Error::Rejected(error.message().to_owned())),
                }
            }
        }
    }

    /// Names of the folder's branches.
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
        match branch_in_the_way(branch, there.iter().map(String::as_str)) {
            Some(by) => Err(Error::BranchInTheWay {
                branch: branch.to_owned(),
                by: by.to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// Checks a branch out: working tree, index and head.
    ///
    /// # Errors
    /// [`Error::Rejected`] when a file in the way would be lost; nothing is changed then.
    pub fn check_out(&self, branch: &str) -> Result<(), Error> {
        let name = reference(branch);
        let commit = self.git.find_reference(&name)?.peel_to_commit()?;
        let mut options = CheckoutBuilder::new();
        options.safe();
        self.git
            .checkout_tree(commit.as_object(), Some(&mut options))
            .map_err(|error| Error::Rejected(error.message().to_owned()))?;
        Ok(self.git.set_head(&name)?)
    }

    fn refuse_checked_out(&self, branch: &str) -> Result<(), Error> {
        let found = self.git.find_branch(branch, git2::BranchType::Local);
        if found.is_ok_and(|found| found.is_head()) {
            Err(Error::Rejected(format!("{branch} is checked out")))
        } else {
            Ok(())
        }
    }

    fn copy(&self, mirror: &Repository, base: &CommitId, head: &CommitId) -> Result<(), Error> {
        let pack = mirror.pack(std::slice::from_ref(head), base, MAX_PACK_BYTES)?;
        let objects = self.git.odb()?;
        let mut writer = objects.packwriter()?;
        writer.write_all(&pack)?;
        writer.commit()?;
        Ok(())
    }
}

fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

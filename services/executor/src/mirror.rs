//! Bare mirrors of repositories, one each, fetched from the git gate.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use domain::{CommitId, RepositoryName};
use git::{Auth, Repository, Transport};
use secrecy::SecretString;
use tokio::sync::Mutex as AsyncMutex;

/// The base of a workspace, and where to get it.
pub(crate) struct Wanted {
    pub(crate) repository: RepositoryName,
    /// Base URL of the git gate.
    pub(crate) gate_url: String,
    /// Grant for the gate.
    pub(crate) gate_grant: SecretString,
    /// Absent: the head of `base_branch` as it is now.
    pub(crate) base: Option<CommitId>,
    pub(crate) base_branch: String,
}

/// Held by who works on a mirror: whether the one before ended by itself, so that it left no lock.
type MirrorLock = Arc<AsyncMutex<bool>>;

/// Mirrors on disk.
pub(crate) struct Mirrors {
    folder: PathBuf,
    locks: Mutex<HashMap<RepositoryName, MirrorLock>>,
}

impl Mirrors {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            locks: Mutex::default(),
        }
    }

    /// Where a repository's mirror is.
    pub(crate) fn path(&self, repository: &RepositoryName) -> PathBuf {
        self.folder
            .join(repository.owner())
            .join(format!("{}.git", repository.name()))
    }

    /// Repositories whose mirror is here and holds something.
    pub(crate) fn warm(&self) -> Vec<RepositoryName> {
        let folders = |path: &Path| {
            let entries = std::fs::read_dir(path)
                .into_iter()
                .flatten()
                .filter_map(Result::ok);
            entries
                .filter_map(|entry| entry.file_name().into_string().ok())
                .collect::<Vec<_>>()
        };
        let names = folders(&self.folder).into_iter().flat_map(|owner| {
            let names = folders(&self.folder.join(&owner));
            names
                .into_iter()
                .filter_map(move |name| RepositoryName::new(&owner, name.strip_suffix(".git")?).ok())
        });
        let is_filled = |name: &RepositoryName| {
            let path = self.path(name);
            path.join("packed-refs").exists() || !folders(&path.join("refs/heads")).is_empty()
        };
        let mut names: Vec<_> = names.filter(is_filled).collect();
        names.sort();
        names
    }

    /// Sees to it that the mirror holds the base, and says which commit that is. A pinned commit that is here already
    /// needs no network.
    pub(crate) async fn prepare(&self, wanted: &Wanted) -> Result<CommitId, git::Error> {
        let path = self.path(&wanted.repository);
        let lock = self.lock(&wanted.repository);
        let mut is_clean = lock.lock().await;
        make(&path, std::mem::take(&mut *is_clean)).await?;
        if let Some(base) = &wanted.base
            && holds(&path, base).await?
        {
            return Ok(base.clone());
        }
        let url = format!(
            "{}/{}.git",
            wanted.gate_url.trim_end_matches('/'),
            wanted.repository
        );
        let auth = Auth::bearer(&wanted.gate_grant);
        let transport = Transport::new(&path);
        let fetched = transport.fetch(&url, Some(&auth), &["+refs/heads/*:refs/heads/*"], true);
        failpoint::around("executor.mirror.fetch", fetched).await?;
        *is_clean = true;
        let missing = |what: String| git::Error::NotFound(format!("{what} in {}", wanted.repository));
        match &wanted.base {
            Some(base) if holds(&path, base).await? => Ok(base.clone()),
            Some(base) => Err(missing(format!("commit {}", base.short()))),
            None => {
                let branch = wanted.base_branch.clone();
                let head = blocking(move || Repository::open(&path)?.branch_head(&branch)).await?;
                head.ok_or_else(|| missing(format!("branch {}", wanted.base_branch)))
            }
        }
    }

    fn lock(&self, repository: &RepositoryName) -> MirrorLock {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(locks.entry(repository.clone()).or_default())
    }
}

async fn make(path: &Path, is_clean: bool) -> Result<(), git::Error> {
    let path = path.to_owned();
    blocking(move || {
        let made = if is_clean {
            Repository::init_bare(&path)
        } else {
            Repository::take_over(&path)
        };
        made.map(drop)
    })
    .await
}

async fn holds(path: &Path, commit: &CommitId) -> Result<bool, git::Error> {
    let (path, commit) = (path.to_owned(), commit.clone());
    blocking(move || Ok(Repository::open(&path)?.contains(&commit))).await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, git::Error> + Send + 'static,
) -> Result<T, git::Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| git::Error::Failed(error.to_string()))?
}

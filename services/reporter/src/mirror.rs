//! Bare mirrors of the repositories: what the git gate serves and pushes start from. Only the reporter writes them.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex as StdMutex, PoisonError},
    time::Duration,
};

use domain::{CommitId, RepositoryName};
use git::{Auth, Pushed, Repository, Transport};
use tokio::{sync::Mutex, time::Instant};

use crate::trouble::Trouble;

/// A mirror that was fetched this recently is as good as new.
const FRESH: Duration = Duration::from_secs(5);
const HEADS: &str = "+refs/heads/*:refs/heads/*";

/// When a mirror was fetched last; whoever holds the lock fetches, and the others find it fresh.
type FetchedAt = Arc<Mutex<Option<Instant>>>;

/// Every mirror under one directory.
pub(crate) struct Mirrors {
    root: PathBuf,
    github: github::Writer,
    fetched: StdMutex<HashMap<RepositoryName, FetchedAt>>,
}

impl Mirrors {
    /// Mirrors under `root`, fetched as the writer.
    pub(crate) fn new(root: PathBuf, github: github::Writer) -> Self {
        Self {
            root,
            github,
            fetched: StdMutex::default(),
        }
    }

    /// The mirror, as the remote was at most 5 s ago. Many who wait cause one fetch.
    pub(crate) async fn fresh(&self, repository: &RepositoryName) -> Result<PathBuf, Trouble> {
        let fetched_at = self.fetched_at(repository);
        let mut fetched_at = fetched_at.lock().await;
        if fetched_at.is_none_or(|at| at.elapsed() > FRESH) {
            self.fetch(repository).await?;
            *fetched_at = Some(Instant::now());
        }
        Ok(self.dir(repository))
    }

    /// The mirror as it is, fetched if it never was by this process.
    pub(crate) async fn existing(&self, repository: &RepositoryName) -> Result<PathBuf, Trouble> {
        let known = self.fetched_at(repository).lock().await.is_some();
        if known {
            Ok(self.dir(repository))
        } else {
            self.fresh(repository).await
        }
    }

    /// Pushes one commit of the mirror to one branch of the remote.
    pub(crate) async fn push(
        &self,
        repository: &RepositoryName,
        head: &CommitId,
        branch: &str,
        expected: Option<&CommitId>,
    ) -> Result<Pushed, Trouble> {
        let auth = self.auth(repository).await?;
        let url = self.github.git_url(repository);
        let pushed = Transport::new(self.dir(repository))
            .push(&url, Some(&auth), head, branch, expected)
            .await?;
        *self.fetched_at(repository).lock().await = None;
        Ok(pushed)
    }

    async fn fetch(&self, repository: &RepositoryName) -> Result<(), Trouble> {
        let dir = self.dir(repository);
        let started = Instant::now();
        let made = dir.clone();
        blocking(move || {
            if made.join("HEAD").exists() {
                Ok(())
            } else {
                Repository::init_bare(&made).map(drop)
            }
        })
        .await?;
        let auth = self.auth(repository).await?;
        let url = self.github.git_url(repository);
        Transport::new(&dir)
            .fetch(&url, Some(&auth), &[HEADS], true)
            .await?;
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(%repository, duration_ms, "mirror fetched");
        Ok(())
    }

    async fn auth(&self, repository: &RepositoryName) -> Result<Auth, Trouble> {
        Ok(Auth::basic(
            "x-access-token",
            &self.github.installation_token(repository).await?,
        ))
    }

    fn fetched_at(&self, repository: &RepositoryName) -> FetchedAt {
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(fetched.entry(repository.clone()).or_default())
    }

    fn dir(&self, repository: &RepositoryName) -> PathBuf {
        mirror_dir(&self.root, repository)
    }
}

/// `root/acme/shop.git`; both names hold no separator.
fn mirror_dir(root: &Path, repository: &RepositoryName) -> PathBuf {
    root.join(repository.owner())
        .join(format!("{}.git", repository.name()))
}

/// Runs git2 work, which blocks, away from the runtime's threads.
pub(crate) async fn blocking<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, Trouble>
where
    T: Send + 'static,
    E: Send + 'static,
    Trouble: From<E>,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => Ok(result?),
        Err(_) => Err(Trouble::Failed("the work on the repository was cut".to_owned())),
    }
}

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

/// What this process knows of a mirror; whoever holds the lock works on it.
#[derive(Default)]
struct Known {
    /// Whoever worked on it last ended by itself, so that it left no lock.
    is_clean: bool,
    /// When it was fetched last.
    fetched_at: Option<Instant>,
}

type MirrorLock = Arc<Mutex<Known>>;

/// Every mirror under one directory.
pub(crate) struct Mirrors {
    root: PathBuf,
    github: github::Writer,
    known: StdMutex<HashMap<RepositoryName, MirrorLock>>,
}

impl Mirrors {
    /// Mirrors under `root`, fetched as the writer.
    pub(crate) fn new(root: PathBuf, github: github::Writer) -> Self {
        Self {
            root,
            github,
            known: StdMutex::default(),
        }
    }

    /// The mirror, as the remote was at most 5 s ago. Many who wait cause one fetch.
    pub(crate) async fn fresh(&self, repository: &RepositoryName) -> Result<PathBuf, Trouble> {
        let known = self.known(repository);
        let mut known = known.lock().await;
        if known.fetched_at.is_none_or(|at| at.elapsed() > FRESH) {
            self.fetch(repository, &mut known).await?;
        }
        Ok(self.dir(repository))
    }

    /// The mirror as it is, fetched if it never was by this process.
    pub(crate) async fn existing(&self, repository: &RepositoryName) -> Result<PathBuf, Trouble> {
        let is_fetched = self.known(repository).lock().await.fetched_at.is_some();
        if is_fetched {
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
        let transport = Transport::new(self.dir(repository));
        let push = transport.push(&url, Some(&auth), head, branch, expected);
        let pushed = failpoint::around("reporter.push", push).await?;
        self.known(repository).lock().await.fetched_at = None;
        Ok(pushed)
    }

    async fn fetch(&self, repository: &RepositoryName, known: &mut Known) -> Result<(), Trouble> {
        let dir = self.dir(repository);
        let started = Instant::now();
        if !std::mem::take(&mut known.is_clean) {
            let left = dir.clone();
            blocking(move || Repository::take_over(&left).map(drop)).await?;
        }
        let auth = self.auth(repository).await?;
        let url = self.github.git_url(repository);
        let transport = Transport::new(&dir);
        let fetched = transport.fetch(&url, Some(&auth), &[HEADS], true);
        failpoint::around("reporter.mirror.fetch", fetched).await?;
        (known.is_clean, known.fetched_at) = (true, Some(Instant::now()));
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(%repository, duration_ms, "mirror fetched");
        Ok(())
    }

    async fn auth(&self, repository: &RepositoryName) -> Result<Auth, Trouble> {
        let token = self.github.installation_token(repository);
        let token = failpoint::around("reporter.github.token", token).await?;
        Ok(Auth::basic("x-access-token", &token))
    }

    fn known(&self, repository: &RepositoryName) -> MirrorLock {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(repository.clone()).or_default())
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

//! Bare mirrors of the repositories: what the git gate serves and pushes start from. Only the reporter writes them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use domain::{CommitId, PushBranch, RepositoryName};
use git::{Auth, DiskFloor, Mirror, MirrorFolder, Pushed, Repository, Transport};
use tokio::time::Instant;

use crate::{
    folders::{Folders, Place},
    message,
    trouble::Trouble,
};

/// A mirror that was fetched this recently is as good as new.
const FRESH: Duration = Duration::from_secs(5);
const HEADS: &str = "+refs/heads/*:refs/heads/*";

/// What this process knows of a mirror; whoever holds the lock works on it.
#[derive(Default)]
struct Known {
    /// The last fetch by this process completed, so no stale lock can remain.
    is_clean: bool,
    /// When it was fetched last.
    fetched_at: Option<Instant>,
}

/// Every mirror under one folder.
pub(crate) struct Mirrors {
    folder: Arc<MirrorFolder<Known>>,
    floor: DiskFloor,
    github: github::Writer,
    folders: Folders,
}

impl Mirrors {
    /// Mirrors under `root`, fetched as the writer; those that nobody uses go while the disk has less free than the floor.
    pub(crate) fn new(root: PathBuf, floor: DiskFloor, github: github::Writer, folders: Folders) -> Self {
        Self {
            folder: Arc::new(MirrorFolder::new(root)),
            floor,
            github,
            folders,
        }
    }

    /// Where a repository's mirror is; it stays there as long as somebody holds this.
    pub(crate) fn hold(&self, repository: &RepositoryName) -> Arc<Path> {
        self.folder.get(repository).path
    }

    /// The mirror, as the remote was at most 5 s ago. Many who wait cause one fetch.
    pub(crate) async fn fresh(&self, repository: &RepositoryName) -> Result<Arc<Path>, Trouble> {
        let mirror = self.folder.get(repository);
        let mut known = mirror.state.lock().await;
        if known.fetched_at.is_none_or(|at| at.elapsed() > FRESH) {
            self.fetch(repository, &mirror, &mut known).await?;
        }
        Ok(Arc::clone(&mirror.path))
    }

    /// The mirror with a commit of the remote, which may be younger than the last fetch.
    pub(crate) async fn with_commit(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
    ) -> Result<Arc<Path>, Trouble> {
        let mirror = self.fresh(repository).await?;
        let (path, wanted) = (Arc::clone(&mirror), commit.clone());
        let is_there = blocking(move || Ok::<_, git::Error>(Repository::open(&path)?.contains(&wanted)));
        if !is_there.await? {
            let mirror = self.folder.get(repository);
            let mut known = mirror.state.lock().await;
            self.fetch(repository, &mirror, &mut known).await?;
        }
        Ok(mirror)
    }

    /// The mirror as it is, fetched if it is not here or never was by this process.
    pub(crate) async fn existing(&self, repository: &RepositoryName) -> Result<Arc<Path>, Trouble> {
        let mirror = self.folder.get(repository);
        let is_fetched = mirror.state.lock().await.fetched_at.is_some();
        if is_fetched {
            Ok(mirror.path)
        } else {
            self.fresh(repository).await
        }
    }

    /// The local folder that a repository is in; absent: it is on a server.
    pub(crate) fn place(&self, repository: &RepositoryName) -> Result<Option<Place>, Trouble> {
        self.folders.of(repository)
    }

    /// The commit that a branch of the remote is at.
    pub(crate) async fn remote_head(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Option<CommitId>, Trouble> {
        let Some(place) = self.place(repository)? else {
            return Ok(self.github.branch_head(repository, branch).await?);
        };
        let branch = branch.to_owned();
        blocking(move || place.branch_head(&branch)).await
    }

    /// Pushes one commit of the mirror to one branch of the remote.
    pub(crate) async fn push(&self, push: &PushBranch) -> Result<Pushed, Trouble> {
        let mirror = self.folder.get(&push.repository);
        let pushing = Box::pin(self.push_from(&mirror.path, push));
        let pushed = failpoint::around("reporter.push", pushing).await?;
        mirror.state.lock().await.fetched_at = None;
        Ok(pushed)
    }

    async fn push_from(&self, mirror: &Arc<Path>, push: &PushBranch) -> Result<Pushed, Trouble> {
        if let Some(place) = self.place(&push.repository)? {
            let (mirror, push) = (Arc::clone(mirror), push.clone());
            let branch = push.branch.clone();
            let pushed = blocking(move || Ok::<_, git::Error>(place.push(&mirror, &push))).await?;
            return pushed.map_err(|error| Trouble::of_push(error, &branch));
        }
        let remote = self.github.push_remote(&push.repository);
        let (url, auth) = addressed(remote).await?;
        let transport = Transport::new(&**mirror);
        let (head, branch, expected) = (&push.head, &push.branch, push.expected.as_ref());
        let pushed = transport.push(&url, Some(&auth), head, branch, expected);
        pushed.await.map_err(|error| Trouble::of_push(error, branch))
    }

    async fn fetch(
        &self,
        repository: &RepositoryName,
        mirror: &Mirror<Known>,
        known: &mut Known,
    ) -> Result<(), Trouble> {
        let started = Instant::now();
        self.make_room().await?;
        if !std::mem::take(&mut known.is_clean) {
            let left = Arc::clone(&mirror.path);
            blocking(move || Repository::take_over(&left).map(drop)).await?;
        }
        mirror.touch();
        let fetched = Box::pin(self.fetch_into(&mirror.path, repository));
        failpoint::around("reporter.mirror.fetch", fetched).await?;
        (known.is_clean, known.fetched_at) = (true, Some(Instant::now()));
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(%repository, duration_ms, "mirror fetched");
        Ok(())
    }

    async fn fetch_into(&self, mirror: &Arc<Path>, repository: &RepositoryName) -> Result<(), Trouble> {
        if let Some(place) = self.place(repository)? {
            let mirror = Arc::clone(mirror);
            return blocking(move || place.fetch(&mirror)).await;
        }
        let remote = self.github.fetch_remote(repository);
        let (url, auth) = addressed(remote).await?;
        let transport = Transport::new(&**mirror);
        Ok(transport.fetch(&url, Some(&auth), &[HEADS], true).await?)
    }

    async fn make_room(&self) -> Result<(), Trouble> {
        let (folder, floor) = (Arc::clone(&self.folder), self.floor);
        let gone = blocking(move || Ok::<_, git::Error>(folder.make_room(floor))).await?;
        for repository in gone {
            tracing::info!(%repository, "a mirror goes, the disk is nearly full");
        }
        Ok(())
    }
}

/// The address and the credentials of a remote.
pub(crate) async fn addressed(
    remote: impl Future<Output = Result<github::GitRemote, github::Error>>,
) -> Result<(String, Auth), Trouble> {
    let remote = failpoint::around("reporter.github.token", remote).await?;
    Ok((remote.url, Auth::basic("x-access-token", &remote.token)))
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
        Err(_) => Err(Trouble::Failed(message::work_was_cut())),
    }
}

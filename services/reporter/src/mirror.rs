//! Bare mirrors of the repositories: what the git gate serves and pushes start from. Only the reporter writes them.
//!
//! A fetch belongs to its mirror, not to a caller: many wait for one, and it goes on when they are gone.

mod fetching;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bootstrap::rules::RulesStore;
use domain::{CommitId, PushBranch, RepositoryName};
use git::{Auth, DiskFloor, FetchSettings, MirrorFolder, Pushed, Repository, Transport};
use tokio_util::sync::CancellationToken;

use self::fetching::{FetchState, Fetches};
use crate::{
    folders::{Folders, Place},
    message,
    trouble::{FETCH_WAIT, Trouble},
};

/// How long a report waits for a fetch with its ticket in hand.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often mirrors are looked at for routine work, and how long one needs none.
const MAINTENANCE_EVERY: Duration = Duration::from_secs(60 * 60);
const MAINTAINED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// What a caller of the gate is after, where it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WantedHead {
    /// The branch.
    pub(crate) branch: Option<String>,
    /// The commit.
    pub(crate) commit: Option<CommitId>,
}

/// A mirror as it can be served.
#[derive(Debug)]
pub(crate) enum MirrorView {
    /// It is as the remote was at most 5 s ago, or holds what was asked for.
    Ready(Arc<Path>),
    /// It is being fetched.
    NotReady {
        /// How far that is, of a hundred.
        percent: Option<u8>,
    },
    /// The branch that was asked for is refused for good.
    RefusedBranch {
        /// Why, for people.
        reason: String,
    },
}

/// Every mirror under one folder.
pub(crate) struct Mirrors {
    fetches: Arc<Fetches>,
}

impl Mirrors {
    /// Mirrors under `root`, fetched as the writer; those that nobody uses go while the disk has less free than the floor.
    pub(crate) fn new(
        root: PathBuf,
        floor: DiskFloor,
        github: github::Writer,
        folders: Folders,
        (rules, settings): (RulesStore, FetchSettings),
    ) -> Self {
        let folder = Arc::new(MirrorFolder::new(root));
        Self {
            fetches: Arc::new(Fetches::new(folder, floor, github, folders, (rules, settings))),
        }
    }

    /// Where a repository's mirror is; it stays there as long as somebody holds this.
    pub(crate) fn hold(&self, repository: &RepositoryName) -> Arc<Path> {
        self.fetches.folder.get(repository).path
    }

    /// The mirror, as the remote was at most 5 s ago.
    pub(crate) async fn fresh(&self, repository: &RepositoryName) -> Result<Arc<Path>, Trouble> {
        let mirror = self.hold(repository);
        if !self.fetches.is_fresh(repository) {
            self.fetched(repository).await?;
        }
        Ok(mirror)
    }

    /// Waits for a fetch, one that is under way or a new one; not for a whole first clone.
    async fn fetched(&self, repository: &RepositoryName) -> Result<(), Trouble> {
        let mut state = self.fetches.join(repository);
        let now = fetching::wait_until(&mut state, PATIENCE, FetchState::is_done).await?;
        if now.is_done() {
            return now.outcome();
        }
        let percent = now.percent();
        Err(Trouble::HeldBack {
            detail: git::Error::NotReady { percent }.to_string(),
            wait: FETCH_WAIT,
        })
    }

    /// The mirror for a caller of the gate, who is kept waiting for `patience`. While the first clone goes on, what has come
    /// is served to those who want that.
    pub(crate) async fn view(
        &self,
        repository: &RepositoryName,
        wanted: &WantedHead,
        patience: Duration,
    ) -> Result<MirrorView, Trouble> {
        let mirror = self.hold(repository);
        if !self.fetches.is_fresh(repository) {
            let mut state = self.fetches.join(repository);
            let is_over = |state: &FetchState| state.is_done() || state.is_usable();
            let now = fetching::wait_until(&mut state, patience, is_over).await?;
            let is_enough = now.is_done() || (now.is_usable() && holds(&mirror, wanted).await?);
            if !is_enough {
                let percent = now.percent();
                return Ok(MirrorView::NotReady { percent });
            }
            if now.is_done() {
                now.outcome()?;
            }
        }
        let refused = wanted
            .branch
            .as_deref()
            .and_then(|branch| self.fetches.refusal_of(repository, branch));
        Ok(match refused {
            Some(reason) => MirrorView::RefusedBranch { reason },
            None => MirrorView::Ready(mirror),
        })
    }

    /// The mirror with a commit of the remote, which may be younger than the last fetch.
    pub(crate) async fn with_commit(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
    ) -> Result<Arc<Path>, Trouble> {
        let mirror = self.fresh(repository).await?;
        let wanted = WantedHead {
            branch: None,
            commit: Some(commit.clone()),
        };
        if !holds(&mirror, &wanted).await? {
            self.fetched(repository).await?;
        }
        Ok(mirror)
    }

    /// The mirror as it is, fetched if it is not here or never was by this process.
    pub(crate) async fn existing(&self, repository: &RepositoryName) -> Result<Arc<Path>, Trouble> {
        if self.fetches.is_known(repository) {
            Ok(self.hold(repository))
        } else {
            self.fresh(repository).await
        }
    }

    /// The local folder that a repository is in; absent: it is on a server.
    pub(crate) fn place(&self, repository: &RepositoryName) -> Result<Option<Place>, Trouble> {
        self.fetches.folders.of(repository)
    }

    /// The commit that a branch of the remote is at.
    pub(crate) async fn remote_head(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Option<CommitId>, Trouble> {
        let Some(place) = self.place(repository)? else {
            return Ok(self.fetches.github.branch_head(repository, branch).await?);
        };
        let branch = branch.to_owned();
        blocking(move || place.branch_head(&branch)).await
    }

    /// Pushes one commit of the mirror to one branch of the remote.
    pub(crate) async fn push(&self, push: &PushBranch) -> Result<Pushed, Trouble> {
        let mirror = self.hold(&push.repository);
        let pushing = Box::pin(self.push_from(&mirror, push));
        let pushed = failpoint::around("reporter.push", pushing).await?;
        self.fetches.forget_time(&push.repository);
        Ok(pushed)
    }

    async fn push_from(&self, mirror: &Arc<Path>, push: &PushBranch) -> Result<Pushed, Trouble> {
        if let Some(place) = self.place(&push.repository)? {
            let (mirror, push) = (Arc::clone(mirror), push.clone());
            let branch = push.branch.clone();
            let pushed = blocking(move || Ok::<_, git::Error>(place.push(&mirror, &push))).await?;
            return pushed.map_err(|error| match error {
                // A folder is no remote that is in trouble for a while: what it refuses, it refuses again.
                git::Error::Failed(_) => Trouble::Failed(domain::cause::chain(&error)),
                error => Trouble::of_push(error, &branch),
            });
        }
        let remote = self.fetches.github.push_remote(&push.repository);
        let (url, auth) = addressed(remote).await?;
        let transport = Transport::new(&**mirror);
        let (head, branch, expected) = (&push.head, &push.branch, push.expected.as_ref());
        let pushed = transport.push(&url, Some(&auth), head, branch, expected);
        pushed.await.map_err(|error| Trouble::of_push(error, branch))
    }

    /// Once a day packs each mirror that nobody uses, one after the other, until shutdown.
    pub(crate) async fn maintain(&self, shutdown: CancellationToken) {
        loop {
            let waited = shutdown
                .run_until_cancelled(tokio::time::sleep(MAINTENANCE_EVERY))
                .await;
            if waited.is_none() {
                return;
            }
            self.maintain_once(MAINTAINED_FOR).await;
        }
    }

    /// Packs each mirror that nobody uses and that nobody packed for this long.
    pub(crate) async fn maintain_once(&self, due: Duration) {
        let names: Vec<RepositoryName> = self.fetches.folder.names().collect();
        for repository in names {
            self.fetches.maintain(&repository, due).await;
        }
    }
}

/// Whether a mirror has what a caller is after; true when it did not say.
async fn holds(mirror: &Arc<Path>, wanted: &WantedHead) -> Result<bool, Trouble> {
    let (mirror, wanted) = (Arc::clone(mirror), wanted.clone());
    blocking(move || {
        let mirror = Repository::open(&mirror)?;
        let has_commit = wanted.commit.is_none_or(|commit| mirror.contains(&commit));
        let has_branch = match &wanted.branch {
            Some(branch) => mirror.branch_head(branch)?.is_some(),
            None => true,
        };
        Ok::<_, git::Error>(has_commit && has_branch)
    })
    .await
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

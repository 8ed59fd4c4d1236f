//! Bare mirrors of repositories, one each, fetched from the git gate.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bootstrap::trace;
use domain::{CommitId, RepositoryName};
use git::{Auth, DiskFloor, FetchSettings, FetchWatch, MirrorFolder, Repository, Transport};
use secrecy::SecretString;
use tracing::Instrument as _;

/// The base of a workspace, and where to get it.
pub(crate) struct Wanted {
    pub(crate) repository: RepositoryName,
    /// Base URL of the git gate.
    pub(crate) gate_url: String,
    /// The file of the authority that the gate's certificate is of; absent: those of the system.
    pub(crate) gate_authority: Option<PathBuf>,
    /// Grant for the gate.
    pub(crate) gate_grant: SecretString,
    /// Absent: the head of `base_branch` as it is now.
    pub(crate) base: Option<CommitId>,
    pub(crate) base_branch: String,
}

/// The git gate serves a mirror that it fetched so recently without asking the remote again, and a little more.
const GATE_FRESH: Duration = Duration::from_millis(5_200);

/// Branches, and names of branches that the gate has not got.
const REFSPECS: [&str; 2] = ["+refs/heads/*:refs/heads/*", "+refs/taken/*:refs/taken/*"];

/// Mirrors on disk. Of each this process knows whether who worked on it last ended by itself, so that it left no lock.
pub(crate) struct Mirrors {
    folder: Arc<MirrorFolder<bool>>,
    settings: FetchSettings,
}

/// Where a mirror is. It stays there as long as somebody holds this.
pub(crate) type MirrorPath = Arc<Path>;

impl Mirrors {
    pub(crate) fn new(folder: PathBuf, settings: FetchSettings) -> Self {
        Self {
            folder: Arc::new(MirrorFolder::new(folder)),
            settings,
        }
    }

    /// Repositories whose mirror is here and holds something.
    pub(crate) fn warm(&self) -> Vec<RepositoryName> {
        let is_filled = |name: &RepositoryName| {
            let path = self.folder.path(name);
            let heads =
                || fs::read_dir(path.join("refs/heads")).is_ok_and(|mut heads| heads.next().is_some());
            path.join("packed-refs").exists() || heads()
        };
        let mut names: Vec<_> = self.folder.names().filter(is_filled).collect();
        names.sort();
        names
    }

    /// Lets mirrors go that nobody reads from, while the disk has less free than the floor. Blocks.
    pub(crate) fn make_room(&self, floor: DiskFloor) {
        for repository in self.folder.make_room(floor) {
            tracing::info!(%repository, "a mirror goes, the disk is nearly full");
        }
    }

    /// Sees to it that the mirror holds the base, and says which commit that is. A pinned commit that is here already
    /// needs no network. What is being fetched goes on when the caller goes away: the next one finds it here.
    pub(crate) async fn prepare(&self, wanted: &Arc<Wanted>) -> Result<(CommitId, MirrorPath), git::Error> {
        let mirror = self.folder.get(&wanted.repository);
        let (wanted, watch) = (Arc::clone(wanted), FetchWatch::new(self.settings));
        let preparing = tokio::spawn(
            async move {
                let mut is_clean = mirror.state.lock().await;
                make(&mirror.path, std::mem::take(&mut *is_clean)).await?;
                mirror.touch();
                let base = fetch(&wanted, &mirror.path, &mut is_clean, watch).await?;
                Ok((base, Arc::clone(&mirror.path)))
            }
            .in_current_span(),
        );
        preparing
            .await
            .unwrap_or_else(|error| Err(git::Error::Failed(error.into())))
    }
}

/// Fetches once more when the wanted commit is not there: it may have been pushed after the gate fetched last. While the gate
/// waits for its first clone the planner asks again, with a new grant, and shows how far the clone is.
async fn fetch(
    wanted: &Wanted,
    path: &Path,
    is_clean: &mut bool,
    watch: FetchWatch,
) -> Result<CommitId, git::Error> {
    if let Some(base) = &wanted.base
        && holds(path, base).await?
    {
        return Ok(base.clone());
    }
    match fetch_once(wanted, path, is_clean, &watch).await {
        Err(git::Error::NotFound(_)) if wanted.base.is_some() => {
            tokio::time::sleep(GATE_FRESH).await;
            fetch_once(wanted, path, is_clean, &watch).await
        }
        fetched => fetched,
    }
}

async fn fetch_once(
    wanted: &Wanted,
    path: &Path,
    is_clean: &mut bool,
    watch: &FetchWatch,
) -> Result<CommitId, git::Error> {
    let url = format!(
        "{}/{}.git",
        wanted.gate_url.trim_end_matches('/'),
        wanted.repository
    );
    let auth = Auth::bearer(&wanted.gate_grant);
    let mut transport = Transport::new(path)
        .in_trace(trace::traceparent())
        .with_watch(watch.clone());
    // While the gate's own first clone goes on, it serves those whose head has come.
    transport = match &wanted.base {
        Some(base) => transport.with_header(git::WANTED_COMMIT, base.as_str()),
        None => transport.with_header(git::WANTED_BRANCH, &wanted.base_branch),
    };
    if let Some(authority) = &wanted.gate_authority {
        transport = transport.with_authority(authority);
    }
    let fetched = transport.fetch(&url, Some(&auth), &REFSPECS, true);
    failpoint::around("executor.mirror.fetch", fetched).await?;
    *is_clean = true;
    let missing = |what: String| git::Error::NotFound(format!("{what} in {}", wanted.repository));
    match &wanted.base {
        Some(base) if holds(path, base).await? => Ok(base.clone()),
        Some(base) => Err(missing(format!("commit {}", base.short()))),
        None => {
            let (path, branch) = (path.to_owned(), wanted.base_branch.clone());
            let head = blocking(move || Repository::open(&path)?.branch_head(&branch)).await?;
            head.ok_or_else(|| missing(format!("branch {}", wanted.base_branch)))
        }
    }
}

async fn make(path: &Path, is_clean: bool) -> Result<(), git::Error> {
    let path = path.to_owned();
    blocking(move || {
        let made = if is_clean {
            Repository::init_bare(&path)
        } else {
            Repository::remove_leftovers(&path)?;
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
        .map_err(|error| git::Error::Failed(error.into()))?
}

//! Fetches into mirrors, one at a time for each of them.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use bootstrap::rules::RulesStore;
use domain::{RepositoryName, cause::chain};
use git::{DiskFloor, FetchSettings, FetchWatch, Mirror, MirrorFolder, RefusedBranch, Repository, Transport};
use tokio::{sync::watch, time::Instant};

use super::{addressed, blocking};
use crate::{folders::Folders, trouble::Trouble};

/// A mirror that was fetched this recently is as good as new.
const FRESH: Duration = Duration::from_secs(5);
/// A branch that was refused is tried again after this long, although its head is the same.
const REFUSED_FOR: Duration = Duration::from_secs(60 * 60);
/// The file in a mirror whose time says when it was packed.
const MAINTAINED: &str = "maintained";

/// Whether whoever worked on a mirror last ended by itself, so that no lock remains.
#[derive(Debug, Default)]
pub(super) struct Cleanness(bool);

/// How far a fetch is.
#[derive(Clone, Debug)]
pub(super) enum FetchState {
    /// Under way.
    Running {
        /// Objects of a hundred.
        percent: Option<u8>,
        /// The branches that work begins at are there.
        is_usable: bool,
    },
    /// Over.
    Done(Option<Arc<Trouble>>),
}

impl FetchState {
    pub(super) const fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    pub(super) const fn is_usable(&self) -> bool {
        matches!(self, Self::Running { is_usable: true, .. })
    }

    pub(super) const fn percent(&self) -> Option<u8> {
        match self {
            Self::Running { percent, .. } => *percent,
            Self::Done(_) => None,
        }
    }

    /// What came of it; a fetch that goes on has nothing against it.
    pub(super) fn outcome(&self) -> Result<(), Trouble> {
        match self {
            Self::Running { .. } | Self::Done(None) => Ok(()),
            Self::Done(Some(trouble)) => Err(trouble.repeat()),
        }
    }
}

/// Waits until a fetch is as far as that, or for so long; gives how far it is then.
pub(super) async fn wait_until(
    state: &mut watch::Receiver<FetchState>,
    patience: Duration,
    is_over: impl FnMut(&FetchState) -> bool,
) -> Result<FetchState, Trouble> {
    let waited = tokio::time::timeout(patience, state.wait_for(is_over)).await;
    match waited.map(|waited| waited.map(|state| state.clone())) {
        Ok(Ok(state)) => return Ok(state),
        // The fetch was cut with its process.
        Ok(Err(_)) => return Err(Trouble::Shutdown),
        Err(_) => {}
    }
    Ok(state.borrow().clone())
}

/// What this process knows of a mirror.
#[derive(Debug, Default)]
struct MirrorNote {
    fetched_at: Option<Instant>,
    /// Branches whose history is refused.
    refused: BTreeMap<String, RefusedBranch>,
    refused_at: Option<Instant>,
    running: Option<watch::Receiver<FetchState>>,
}

/// The mirrors, and what is being fetched.
pub(super) struct Fetches {
    pub(super) folder: Arc<MirrorFolder<Cleanness>>,
    floor: DiskFloor,
    pub(super) github: github::Writer,
    pub(super) folders: Folders,
    rules: RulesStore,
    settings: FetchSettings,
    notes: Mutex<HashMap<RepositoryName, MirrorNote>>,
}

impl Fetches {
    pub(super) fn new(
        folder: Arc<MirrorFolder<Cleanness>>,
        floor: DiskFloor,
        github: github::Writer,
        folders: Folders,
        (rules, settings): (RulesStore, FetchSettings),
    ) -> Self {
        Self {
            folder,
            floor,
            github,
            folders,
            rules,
            settings,
            notes: Mutex::default(),
        }
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<RepositoryName, MirrorNote>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the mirror is as good as new.
    pub(super) fn is_fresh(&self, repository: &RepositoryName) -> bool {
        let notes = self.notes();
        let fetched_at = notes.get(repository).and_then(|note| note.fetched_at);
        fetched_at.is_some_and(|at| at.elapsed() <= FRESH)
    }

    /// Whether this process fetched it, at least what work begins at.
    pub(super) fn is_known(&self, repository: &RepositoryName) -> bool {
        let notes = self.notes();
        notes.get(repository).is_some_and(|note| {
            let is_usable = |running: &watch::Receiver<FetchState>| running.borrow().is_usable();
            note.fetched_at.is_some() || note.running.as_ref().is_some_and(is_usable)
        })
    }

    /// The remote has changed by us.
    pub(super) fn forget_time(&self, repository: &RepositoryName) {
        if let Some(note) = self.notes().get_mut(repository) {
            note.fetched_at = None;
        }
    }

    /// Why a branch is refused.
    pub(super) fn refusal_of(&self, repository: &RepositoryName, branch: &str) -> Option<String> {
        let notes = self.notes();
        Some(notes.get(repository)?.refused.get(branch)?.reason.clone())
    }

    /// The fetch that is under way, or a new one. It goes on whether or not somebody waits for it.
    pub(super) fn join(self: &Arc<Self>, repository: &RepositoryName) -> watch::Receiver<FetchState> {
        let mut notes = self.notes();
        let note = notes.entry(repository.clone()).or_default();
        // A task that died tells nothing more; another one takes its place.
        if let Some(running) = note
            .running
            .as_ref()
            .filter(|running| running.has_changed().is_ok() && !running.borrow().is_done())
        {
            return running.clone();
        }
        let (told, state) = watch::channel(FetchState::Running {
            percent: None,
            is_usable: false,
        });
        note.running = Some(state.clone());
        let (fetches, repository) = (Arc::clone(self), repository.clone());
        tokio::spawn(async move {
            let fetched = Box::pin(fetches.fetch(&repository, &told)).await;
            told.send_replace(FetchState::Done(fetched.err().map(Arc::new)));
        });
        state
    }

    async fn fetch(
        &self,
        repository: &RepositoryName,
        told: &watch::Sender<FetchState>,
    ) -> Result<(), Trouble> {
        let mirror = self.folder.get(repository);
        let mut is_clean = mirror.state.lock().await;
        let started = Instant::now();
        self.make_room().await?;
        if !std::mem::take(&mut is_clean.0) {
            let left = Arc::clone(&mirror.path);
            blocking(move || Repository::take_over(&left).map(drop)).await?;
        }
        mirror.touch();
        let fetched = Box::pin(self.fetch_into(&mirror, repository, told));
        let refused = failpoint::around("reporter.mirror.fetch", fetched).await?;
        is_clean.0 = true;
        for (branch, RefusedBranch { reason, .. }) in &refused {
            tracing::warn!(%repository, branch, reason, "branch not fetched");
        }
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(%repository, duration_ms, refused = refused.len(), "mirror fetched");
        let mut notes = self.notes();
        let note = notes.entry(repository.clone()).or_default();
        note.fetched_at = Some(Instant::now());
        let is_due = note.refused_at.is_none_or(|at| at.elapsed() >= REFUSED_FOR);
        if refused != note.refused || refused.is_empty() || is_due {
            note.refused_at = Some(Instant::now());
        }
        note.refused = refused;
        Ok(())
    }

    async fn fetch_into(
        &self,
        mirror: &Mirror<Cleanness>,
        repository: &RepositoryName,
        told: &watch::Sender<FetchState>,
    ) -> Result<BTreeMap<String, RefusedBranch>, Trouble> {
        if let Some(place) = self.folders.of(repository)? {
            let mirror = Arc::clone(&mirror.path);
            blocking(move || place.fetch(&mirror)).await?;
            return Ok(BTreeMap::new());
        }
        let bases = self.base_branches(repository);
        let bases: Vec<&str> = bases.iter().map(String::as_str).collect();
        let watch = FetchWatch::new(self.settings);
        let transport = Transport::new(&*mirror.path).with_watch(watch.clone());
        let fetching = async {
            if is_empty(&mirror.path).await? {
                let (url, auth) = addressed(self.github.fetch_remote(repository)).await?;
                let is_any = transport.fetch_first(&url, Some(&auth), &bases).await?;
                told.send_modify(|state| {
                    if let FetchState::Running { is_usable, .. } = state {
                        *is_usable = is_any;
                    }
                });
            }
            let skipped = self.skipped(repository);
            // A token may be near its end after a long first clone.
            let (url, auth) = addressed(self.github.fetch_remote(repository)).await?;
            let fetched = transport
                .fetch_branches(&url, Some(&auth), &bases, &skipped)
                .await?;
            Ok::<_, Trouble>(fetched.refused)
        };
        let mut progress = watch.follow();
        let telling = async {
            while progress.changed().await.is_ok() {
                let now = progress.borrow_and_update().percent;
                told.send_modify(|state| {
                    if let FetchState::Running { percent, .. } = state {
                        *percent = now;
                    }
                });
            }
            std::future::pending().await
        };
        tokio::select! {
            fetched = fetching => fetched,
            never = telling => never,
        }
    }

    /// The branches that work begins at.
    fn base_branches(&self, repository: &RepositoryName) -> Vec<String> {
        let book = self.rules.book();
        let mut bases: Vec<String> = book
            .for_repository(repository)
            .into_iter()
            .flat_map(|rules| {
                [
                    rules.repo.default_branch.clone(),
                    rules.target_branch().to_owned(),
                ]
            })
            .collect();
        bases.dedup();
        bases
    }

    /// Branches that were refused a short time ago.
    fn skipped(&self, repository: &RepositoryName) -> BTreeMap<String, RefusedBranch> {
        let notes = self.notes();
        let note = notes.get(repository);
        let recent = note.filter(|note| note.refused_at.is_some_and(|at| at.elapsed() < REFUSED_FOR));
        recent.map(|note| note.refused.clone()).unwrap_or_default()
    }

    async fn make_room(&self) -> Result<(), Trouble> {
        let (folder, floor) = (Arc::clone(&self.folder), self.floor);
        let gone = blocking(move || Ok::<_, git::Error>(folder.make_room(floor))).await?;
        for repository in gone {
            self.notes().remove(&repository);
            tracing::info!(%repository, "a mirror goes, the disk is nearly full");
        }
        Ok(())
    }

    /// Packs a mirror that nobody uses, unless that was done lately.
    pub(super) async fn maintain(&self, repository: &RepositoryName, due: Duration) {
        let Mirror { path, state } = self.folder.get(repository);
        let Ok(_working) = state.try_lock() else { return };
        // This one and the table's.
        if Arc::strong_count(&path) > 2 || !is_due(&path, due) {
            return;
        }
        let place = Arc::clone(&path);
        let maintained = blocking(move || {
            git::maintain_mirror(&place)?;
            Ok::<_, git::Error>(std::fs::write(place.join(MAINTAINED), "")?)
        });
        match maintained.await {
            Ok(()) => tracing::info!(%repository, "mirror packed"),
            Err(error) => tracing::warn!(%repository, error = %chain(&error), "mirror not packed"),
        }
    }
}

/// Whether a mirror was not packed for this long.
fn is_due(mirror: &Path, due: Duration) -> bool {
    let packed = std::fs::metadata(mirror.join(MAINTAINED)).and_then(|found| found.modified());
    packed.map_or(true, |at| {
        SystemTime::now().duration_since(at).is_ok_and(|age| age >= due)
    })
}

/// Whether nothing was ever fetched into a mirror.
async fn is_empty(mirror: &Arc<Path>) -> Result<bool, Trouble> {
    let mirror = Arc::clone(mirror);
    blocking(move || Ok::<_, git::Error>(Repository::open(&mirror)?.branches()?.is_empty())).await
}

//! Fetches into mirrors, one at a time for each mirror.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bootstrap::rules::RulesStore;
use domain::{RepositoryName, cause::format_error_chain};
use git::{
    BareRepository, DiskFloor, FetchSettings, FetchWatch, GitProxy, GitTransport, MirrorFolder,
    RefusedBranch, RepositoryMirror, StepTarget,
};
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::watch, time::Instant};

use super::{
    resolve_remote, run_blocking,
    step_note::{StepNote, WantedHead, is_in_steps},
};
use crate::{effect_error::EffectError, folders::FolderTable};

// Age of a fetch up to which a mirror counts as current.
const FRESH: Duration = Duration::from_secs(5);
// Time after which a refused branch is fetched again, even if its head is the same.
const REFUSED_FOR: Duration = Duration::from_secs(60 * 60);
// File in a mirror whose modification time is the time of the last packing.
const MAINTAINED: &str = "maintained";

/// Way to the remotes, and limits of fetches from them.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemoteSettings {
    pub(crate) fetch: FetchSettings,
    pub(crate) proxy: GitProxy,
}

/// True if the last work on a mirror finished, so that no lock file of git remains.
#[derive(Debug, Default)]
pub(super) struct MirrorCleanness(bool);

impl MirrorCleanness {
    /// Returns the state, and marks the mirror as unclean before the work starts: canceled or failed work leaves
    /// locks behind.
    pub(super) fn take(&mut self) -> bool {
        std::mem::take(&mut self.0)
    }

    /// Records work that succeeded. Failed work leaves its locks to the next one.
    pub(super) fn set_clean(&mut self) {
        self.0 = true;
    }
}

/// Progress of a fetch.
#[derive(Clone, Debug)]
pub(super) enum FetchState {
    /// The fetch is in progress.
    Running {
        /// Received objects, in percent.
        percent: Option<u8>,
        /// True if the base branches have arrived.
        is_usable: bool,
    },
    /// The fetch has ended, with its failure if any.
    Done(Option<Arc<EffectError>>),
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

    /// Returns the failure of a fetch. A fetch in progress has none.
    pub(super) fn outcome(&self) -> Result<(), EffectError> {
        match self {
            Self::Running { .. } | Self::Done(None) => Ok(()),
            Self::Done(Some(trouble)) => Err(trouble.repeat()),
        }
    }
}

/// Waits until `is_over` holds or `patience` has passed. Returns the state at that time.
pub(super) async fn wait_until(
    state: &mut watch::Receiver<FetchState>,
    patience: Duration,
    is_over: impl FnMut(&FetchState) -> bool,
) -> Result<FetchState, EffectError> {
    let waited = tokio::time::timeout(patience, state.wait_for(is_over)).await;
    match waited.map(|waited| waited.map(|state| state.clone())) {
        Ok(Ok(state)) => return Ok(state),
        // The fetch ended with its process.
        Ok(Err(_)) => return Err(EffectError::Shutdown),
        Err(_) => {}
    }
    Ok(state.borrow().clone())
}

/// State of a mirror in this process.
#[derive(Debug, Default)]
pub(super) struct MirrorNote {
    pub(super) fetched_at: Option<Instant>,
    /// Begin of the last fetch that succeeded.
    began_at: Option<Instant>,
    /// Time of the last search for a commit that the remote does not have either.
    missed_at: Option<Instant>,
    /// Time of our last push that the mirror lacks. A fetch that began before it does not contain it.
    outdated_at: Option<Instant>,
    /// Branches whose history is refused, by name.
    refused: BTreeMap<String, RefusedBranch>,
    refused_at: Option<Instant>,
    running: Option<watch::Receiver<FetchState>>,
    /// State of the first fetch, if it takes steps.
    pub(super) steps: StepNote,
}

impl MirrorNote {
    fn is_fresh(&self) -> bool {
        self.fetched_at.is_some_and(|at| at.elapsed() <= FRESH)
    }

    /// Notes the end of a fetch that began at `started`.
    fn end_fetch(&mut self, started: Instant) {
        let is_outdated = self.outdated_at.is_some_and(|at| at >= started);
        self.fetched_at = (!is_outdated).then(Instant::now);
        self.began_at = Some(started);
    }

    /// Returns true if a further fetch does not help a caller that asked at this time for a reported commit: one began
    /// since then, or the last search was recent and in vain. So callers that name commits which the remote lacks cause
    /// few fetches.
    fn has_searched(&self, asked: Instant) -> bool {
        let is_in_vain = self.missed_at.is_some_and(|at| at.elapsed() <= FRESH);
        is_in_vain || self.began_at.is_some_and(|at| at >= asked)
    }

    /// Notes that the mirror lacks the reported commit, for which a caller asked at this time.
    fn end_search(&mut self, asked: Instant) {
        // Without a fetch since then, this is the result of an earlier search.
        if self.began_at.is_some_and(|at| at >= asked) {
            self.missed_at = Some(Instant::now());
        }
    }

    /// Notes a push that the mirror lacks.
    fn forget_time(&mut self) {
        self.fetched_at = None;
        self.outdated_at = Some(Instant::now());
    }
}

/// Mirrors and their fetches in progress.
pub(super) struct MirrorFetches {
    pub(super) folder: Arc<MirrorFolder<MirrorCleanness>>,
    floor: DiskFloor,
    pub(super) github: github::GitHubWriter,
    pub(super) folders: FolderTable,
    rules: RulesStore,
    pub(super) remotes: RemoteSettings,
    notes: Mutex<HashMap<RepositoryName, MirrorNote>>,
}

impl MirrorFetches {
    pub(super) fn new(
        folder: Arc<MirrorFolder<MirrorCleanness>>,
        floor: DiskFloor,
        github: github::GitHubWriter,
        folders: FolderTable,
        (rules, remotes): (RulesStore, RemoteSettings),
    ) -> Self {
        Self {
            folder,
            floor,
            github,
            folders,
            rules,
            remotes,
            notes: Mutex::default(),
        }
    }

    /// Returns a transport for the mirror at a path.
    pub(super) fn transport(&self, mirror: &Path) -> GitTransport {
        GitTransport::new(mirror).with_proxy(self.remotes.proxy.clone())
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<RepositoryName, MirrorNote>> {
        self.notes.lock()
    }

    /// Works with the state of a mirror.
    pub(super) fn with_note<T>(
        &self,
        repository: &RepositoryName,
        work: impl FnOnce(&mut MirrorNote) -> T,
    ) -> T {
        work(self.notes().entry(repository.clone()).or_default())
    }

    /// Registers heads for the next fetch of a mirror whose first fetch takes steps. Returns true if no fetch brings
    /// all of them yet.
    pub(super) fn want(&self, repository: &RepositoryName, heads: &[WantedHead]) -> bool {
        self.with_note(repository, |note| {
            let mut is_new = false;
            for head in heads {
                is_new |= note.steps.want(head);
            }
            is_new
        })
    }

    /// Returns true if the mirror counts as current.
    pub(super) fn is_fresh(&self, repository: &RepositoryName) -> bool {
        self.notes().get(repository).is_some_and(MirrorNote::is_fresh)
    }

    /// Returns true if a fetch does not help a caller that asked at this time for a commit that GitHub reported.
    pub(super) fn has_searched(&self, repository: &RepositoryName, asked: Instant) -> bool {
        self.notes()
            .get(repository)
            .is_some_and(|note| note.has_searched(asked))
    }

    /// Notes that the mirror lacks the commit for which a caller asked at this time.
    pub(super) fn end_search(&self, repository: &RepositoryName, asked: Instant) {
        self.with_note(repository, |note| note.end_search(asked));
    }

    /// Returns true if this process has fetched the mirror, at least its base branches.
    pub(super) fn is_known(&self, repository: &RepositoryName) -> bool {
        let notes = self.notes();
        notes.get(repository).is_some_and(|note| {
            let is_usable = |running: &watch::Receiver<FetchState>| running.borrow().is_usable();
            note.fetched_at.is_some() || note.running.as_ref().is_some_and(is_usable)
        })
    }

    /// Marks the mirror as outdated after a push by us.
    pub(super) fn forget_time(&self, repository: &RepositoryName) {
        self.notes().entry(repository.clone()).or_default().forget_time();
    }

    /// Returns the reason why a branch is refused.
    pub(super) fn refusal_of(&self, repository: &RepositoryName, branch: &str) -> Option<String> {
        let notes = self.notes();
        Some(notes.get(repository)?.refused.get(branch)?.reason.clone())
    }

    /// Returns the fetch in progress, or starts one. It continues without waiting callers.
    pub(super) fn join(self: &Arc<Self>, repository: &RepositoryName) -> watch::Receiver<FetchState> {
        let mut notes = self.notes();
        let note = notes.entry(repository.clone()).or_default();
        // A fetch whose task has died sends no more progress, so it is replaced.
        if let Some(running) = note
            .running
            .as_ref()
            .filter(|running| running.has_changed().is_ok() && !running.borrow().is_done())
        {
            return running.clone();
        }
        let (states, state) = watch::channel(FetchState::Running {
            percent: None,
            is_usable: false,
        });
        note.running = Some(state.clone());
        let (fetches, repository) = (Arc::clone(self), repository.clone());
        tokio::spawn(async move {
            let fetched = Box::pin(fetches.fetch(&repository, &states)).await;
            if fetched.is_ok() {
                fetches.continue_steps(&repository);
            }
            states.send_replace(FetchState::Done(fetched.err().map(Arc::new)));
        });
        state
    }

    async fn fetch(
        &self,
        repository: &RepositoryName,
        states: &watch::Sender<FetchState>,
    ) -> Result<(), EffectError> {
        let mirror = self.folder.get(repository);
        let mut is_clean = mirror.state.lock().await;
        let started = Instant::now();
        self.make_room().await?;
        clean_mirror(&mirror.path, &mut is_clean).await?;
        mirror.touch();
        let fetched = Box::pin(self.fetch_into(&mirror, repository, states));
        let refused = failpoint::around("reporter.mirror.fetch", fetched).await?;
        is_clean.set_clean();
        for (branch, RefusedBranch { reason, .. }) in &refused {
            tracing::warn!(%repository, branch, reason, "branch not fetched");
        }
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(%repository, duration_ms, refused = refused.len(), "mirror fetched");
        let mut notes = self.notes();
        let note = notes.entry(repository.clone()).or_default();
        note.end_fetch(started);
        let is_due = note.refused_at.is_none_or(|at| at.elapsed() >= REFUSED_FOR);
        // A fetch that skips the refused branches proves nothing new about them, so their hour does not
        // restart.
        if refused != note.refused || refused.is_empty() || is_due {
            note.refused_at = Some(Instant::now());
        }
        note.refused = refused;
        Ok(())
    }

    async fn fetch_into(
        &self,
        mirror: &RepositoryMirror<MirrorCleanness>,
        repository: &RepositoryName,
        states: &watch::Sender<FetchState>,
    ) -> Result<BTreeMap<String, RefusedBranch>, EffectError> {
        if let Some(place) = self.folders.of(repository)? {
            let mirror = Arc::clone(&mirror.path);
            run_blocking(move || place.fetch(&mirror)).await?;
            return Ok(BTreeMap::new());
        }
        let bases = self.base_branches(repository);
        let bases: Vec<&str> = bases.iter().map(String::as_str).collect();
        let watch = FetchWatch::new(self.remotes.fetch);
        let transport = self.transport(&mirror.path).with_watch(watch.clone());
        // The base branches come first, so that work can start during a long first clone.
        let fetching = async {
            let is_first = is_empty(&mirror.path).await?;
            if is_first && !transport.is_in_steps() && self.is_large(repository).await {
                transport.begin_steps().await?;
            }
            if transport.is_in_steps() {
                let (url, auth) = resolve_remote(self.github.fetch_remote(repository)).await?;
                let target = StepTarget {
                    url: &url,
                    auth: Some(&auth),
                    bases: &bases,
                };
                if self.fetch_heads_first(&transport, repository, target).await? {
                    return Ok(BTreeMap::new());
                }
            }
            if is_first {
                let (url, auth) = resolve_remote(self.github.fetch_remote(repository)).await?;
                let is_any = transport.fetch_first(&url, Some(&auth), &bases).await?;
                states.send_modify(|state| {
                    if let FetchState::Running { is_usable, .. } = state {
                        *is_usable = is_any;
                    }
                });
            }
            let skipped = self.skipped(repository);
            // The token may expire during a long first clone, so a new one is requested.
            let (url, auth) = resolve_remote(self.github.fetch_remote(repository)).await?;
            let fetched = transport
                .fetch_branches(&url, Some(&auth), &bases, &skipped)
                .await?;
            Ok::<_, EffectError>(fetched.refused)
        };
        let mut progress = watch.follow();
        let telling = async {
            while progress.changed().await.is_ok() {
                let now = progress.borrow_and_update().percent;
                states.send_modify(|state| {
                    if let FetchState::Running { percent, .. } = state {
                        *percent = now;
                    }
                });
            }
            // Progress ends before the fetch does, so this branch never completes.
            std::future::pending().await
        };
        tokio::select! {
            fetched = fetching => fetched,
            never = telling => never,
        }
    }

    /// Returns the base branches of the rules.
    pub(super) fn base_branches(&self, repository: &RepositoryName) -> Vec<String> {
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

    /// Returns the branches that were refused recently.
    fn skipped(&self, repository: &RepositoryName) -> BTreeMap<String, RefusedBranch> {
        let notes = self.notes();
        let note = notes.get(repository);
        let recent = note.filter(|note| note.refused_at.is_some_and(|at| at.elapsed() < REFUSED_FOR));
        recent.map(|note| note.refused.clone()).unwrap_or_default()
    }

    /// Removes unused mirrors while the disk has less free space than the floor. Returns true if it has enough then.
    pub(super) async fn make_room(&self) -> Result<bool, EffectError> {
        let (folder, floor) = (Arc::clone(&self.folder), self.floor);
        let (gone, has_room) = run_blocking(move || {
            let gone = folder.make_room(floor);
            Ok::<_, git::Error>((gone, folder.has_room(floor)))
        })
        .await?;
        for repository in gone {
            // The note says that the mirror is fetched, and its folder is gone.
            self.notes().remove(&repository);
            tracing::info!(%repository, "a mirror goes, the disk is nearly full");
        }
        Ok(has_room)
    }

    /// Packs an unused mirror, unless it was packed recently.
    pub(super) async fn maintain(&self, repository: &RepositoryName, due: Duration) {
        let RepositoryMirror { path, state } = self.folder.get(repository);
        // A fetch holds the lock; packing waits for the next interval.
        let Ok(mut is_clean) = state.try_lock() else {
            return;
        };
        // References of this function and of the table. A further one is a user of the mirror.
        if Arc::strong_count(&path) > 2 || !is_due(&path, due) {
            return;
        }
        // A commit beyond the boundary can have no branch that leads to it, and packing would drop it.
        if is_in_steps(&path) {
            return;
        }
        // Packing that fails or reaches its limit leaves locks behind, which the next fetch has to remove.
        let was_clean = is_clean.take();
        let place = Arc::clone(&path);
        let maintained = run_blocking(move || {
            git::maintain_mirror(&place)?;
            Ok::<_, git::Error>(std::fs::write(place.join(MAINTAINED), "")?)
        });
        match maintained.await {
            Ok(()) => {
                if was_clean {
                    is_clean.set_clean();
                }
                tracing::info!(%repository, "mirror packed");
            }
            Err(error) => {
                tracing::warn!(%repository, error = %format_error_chain(&error), "mirror not packed")
            }
        }
    }
}

/// Removes the lock files that canceled or failed work left behind. The caller marks the mirror as clean after its
/// own work.
pub(super) async fn clean_mirror(
    mirror: &Arc<Path>,
    is_clean: &mut MirrorCleanness,
) -> Result<(), EffectError> {
    if is_clean.take() {
        return Ok(());
    }
    let left = Arc::clone(mirror);
    run_blocking(move || BareRepository::take_over(&left).map(drop)).await
}

/// Returns true if the last packing is older than `due`.
fn is_due(mirror: &Path, due: Duration) -> bool {
    let packed = std::fs::metadata(mirror.join(MAINTAINED)).and_then(|found| found.modified());
    // Without the file, the mirror was never packed. A time in the future comes from a clock that was
    // set back, and only delays the packing.
    packed.map_or(true, |at| {
        SystemTime::now().duration_since(at).is_ok_and(|age| age >= due)
    })
}

/// Returns true if a mirror has no branches, so nothing was fetched into it.
async fn is_empty(mirror: &Arc<Path>) -> Result<bool, EffectError> {
    let mirror = Arc::clone(mirror);
    run_blocking(move || Ok::<_, git::Error>(BareRepository::open(&mirror)?.branches()?.is_empty())).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn mirror_is_fresh_for_five_seconds() {
        assert!(!MirrorNote::default().is_fresh(), "never fetched");
        let note = MirrorNote {
            fetched_at: Some(Instant::now()),
            ..MirrorNote::default()
        };
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(note.is_fresh());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!note.is_fresh());
    }

    #[tokio::test(start_paused = true)]
    async fn reported_commit_is_searched_once() {
        let mut note = MirrorNote::default();
        let step = Duration::from_millis(1);
        note.end_fetch(Instant::now());
        tokio::time::advance(step).await;
        let asked = Instant::now();
        assert!(!note.has_searched(asked), "the fetch is older");
        note.end_search(asked);
        assert!(!note.has_searched(asked), "nothing was searched");
        tokio::time::advance(step).await;
        note.end_fetch(Instant::now());
        assert!(note.has_searched(asked));
        tokio::time::advance(step).await;
        assert!(!note.has_searched(Instant::now()), "a later caller");
        note.end_search(asked);
        tokio::time::advance(FRESH).await;
        assert!(note.has_searched(Instant::now()), "the last search was in vain");
        tokio::time::advance(step).await;
        assert!(!note.has_searched(Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn fetch_from_before_push_is_outdated() {
        let mut note = MirrorNote::default();
        let before = Instant::now();
        tokio::time::advance(Duration::from_millis(1)).await;
        note.forget_time();
        note.end_fetch(before);
        assert!(!note.is_fresh());
        tokio::time::advance(Duration::from_millis(1)).await;
        note.end_fetch(Instant::now());
        assert!(note.is_fresh());
    }
}

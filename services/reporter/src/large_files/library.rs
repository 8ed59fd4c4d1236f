//! Contents of commits, collected once for all callers.
//!
//! A collection belongs to its commit, not to a caller: several callers wait for one, and it continues without them.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bootstrap::rules::RulesStore;
use domain::{CommitId, RepositoryName};
use git::{BareRepository, LfsListing, LfsOid, LfsOmission, LfsPointer, LfsStore};
use github::GitHubWriter;
use lfs::{LfsClient, LfsError};
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

use super::{
    fetch::LfsFetcher,
    selection::{LfsLimits, select_contents},
    settings::LfsSettings,
};
use crate::{
    effect_error::EffectError,
    mirror::{RepositoryMirrors, run_blocking},
};

// Time for which a result is served again, so that a failed download is not repeated for each file of an executor.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// Contents of a commit for the gate.
#[derive(Debug)]
pub(crate) enum LfsView {
    /// The rules of the repository do not read Git LFS.
    Off,
    /// The contents are being downloaded.
    NotReady {
        /// Received part, in percent.
        percent: Option<u8>,
    },
    /// Contents that are here, and those that are left out.
    Ready(Arc<LfsListing>),
}

/// Contents of Git LFS in all mirrors.
pub(crate) struct LfsLibrary {
    mirrors: Arc<RepositoryMirrors>,
    rules: RulesStore,
    fetcher: LfsFetcher,
    limits: LfsLimits,
    deadline: Duration,
    collections: Mutex<HashMap<(RepositoryName, CommitId), LfsCollection>>,
}

/// Collection of a commit's contents, in progress or done.
struct LfsCollection {
    state: watch::Receiver<CollectionState>,
    used: Instant,
}

#[derive(Clone, Debug)]
enum CollectionState {
    Running { percent: Option<u8> },
    Done(Result<Arc<LfsListing>, Arc<EffectError>>),
}

impl CollectionState {
    const fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

impl LfsLibrary {
    /// Creates the library over the mirrors below a folder. `deadline` limits each collection.
    ///
    /// # Errors
    /// The system offers no connections.
    pub(crate) fn new(
        (mirrors, folder): (Arc<RepositoryMirrors>, PathBuf),
        rules: RulesStore,
        github: GitHubWriter,
        settings: &LfsSettings,
        deadline: Duration,
    ) -> Result<Self, LfsError> {
        // The settings are checked before, so a wrong network ends the start with its key.
        let rule = settings.address_rule().unwrap_or_default();
        Ok(Self {
            mirrors,
            rules,
            fetcher: LfsFetcher {
                github,
                client: LfsClient::new(rule)?,
                store: Arc::new(LfsStore::new(folder, settings.cache_mib << 20)),
            },
            limits: LfsLimits {
                file_bytes: settings.max_file_mib << 20,
                commit_bytes: settings.max_commit_mib << 20,
            },
            deadline,
            collections: Mutex::default(),
        })
    }

    /// Returns the contents of a commit, after a wait of at most `patience` for those that are missing.
    pub(crate) async fn view(
        self: &Arc<Self>,
        repository: &RepositoryName,
        commit: &CommitId,
        patience: Duration,
    ) -> Result<LfsView, EffectError> {
        let is_read = self
            .rules
            .book()
            .for_repository(repository)
            .is_some_and(domain::RepositoryRules::reads_lfs);
        if !is_read {
            return Ok(LfsView::Off);
        }
        let mut state = self.join(repository, commit);
        let waited = tokio::time::timeout(patience, state.wait_for(CollectionState::is_done)).await;
        if let Ok(Err(_)) = waited {
            // The collection ended with its process.
            return Err(EffectError::Shutdown);
        }
        drop(waited);
        let now = state.borrow().clone();
        match now {
            CollectionState::Running { percent } => Ok(LfsView::NotReady { percent }),
            CollectionState::Done(Ok(listing)) => Ok(LfsView::Ready(listing)),
            CollectionState::Done(Err(error)) => Err(error.repeat()),
        }
    }

    /// Returns the file of a content at a commit; `None` for a content that the commit does not have, or that is gone.
    pub(crate) async fn find_content(
        self: &Arc<Self>,
        repository: &RepositoryName,
        commit: &CommitId,
        (oid, patience): (&LfsOid, Duration),
    ) -> Result<Option<PathBuf>, EffectError> {
        let LfsView::Ready(listing) = self.view(repository, commit, patience).await? else {
            return Ok(None);
        };
        // The caller reads one content after the other, so the listing stays until it is done.
        if let Some(known) = self
            .collections
            .lock()
            .get_mut(&(repository.clone(), commit.clone()))
        {
            known.used = Instant::now();
        }
        let Some(pointer) = listing
            .contents
            .iter()
            .find(|pointer| pointer.oid == *oid)
            .cloned()
        else {
            return Ok(None);
        };
        let (mirror, store) = (self.mirrors.hold(repository), Arc::clone(&self.fetcher.store));
        run_blocking(move || Ok::<_, EffectError>(store.find(&mirror, &pointer))).await
    }

    fn join(
        self: &Arc<Self>,
        repository: &RepositoryName,
        commit: &CommitId,
    ) -> watch::Receiver<CollectionState> {
        let mut collections = self.collections.lock();
        collections.retain(|_, known| {
            let is_running = known.state.has_changed().is_ok() && !known.state.borrow().is_done();
            let has_result = matches!(&*known.state.borrow(), CollectionState::Done(Ok(_)));
            is_running || (has_result && known.used.elapsed() < KEPT_FOR)
        });
        let key = (repository.clone(), commit.clone());
        if let Some(known) = collections.get(&key) {
            return known.state.clone();
        }
        let (sender, state) = watch::channel(CollectionState::Running { percent: None });
        let known = LfsCollection {
            state: state.clone(),
            used: Instant::now(),
        };
        collections.insert(key.clone(), known);
        let library = Arc::clone(self);
        tokio::spawn(async move {
            let (repository, commit) = key;
            let collected = Box::pin(library.collect(&repository, &commit, &sender)).await;
            if let Some(known) = library.collections.lock().get_mut(&(repository, commit)) {
                known.used = Instant::now();
            }
            sender.send_replace(CollectionState::Done(collected.map(Arc::new).map_err(Arc::new)));
        });
        state
    }

    async fn collect(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        progress: &watch::Sender<CollectionState>,
    ) -> Result<LfsListing, EffectError> {
        let started = Instant::now();
        // Held until the end, so that the mirror is not removed meanwhile.
        let mirror = self.mirrors.existing(repository).await?;
        let files = {
            let (mirror, commit) = (Arc::clone(&mirror), commit.clone());
            run_blocking(move || BareRepository::open(&mirror)?.lfs_files(&commit)).await?
        };
        let selection = select_contents(&files, self.limits);
        let store = Arc::clone(&self.fetcher.store);
        let hold = store.hold(&mirror, selection.wanted.iter().cloned());
        let (hold, stored) = run_blocking(move || {
            let stored = hold.stored();
            Ok::<_, EffectError>((hold, stored))
        })
        .await?;
        let (mut contents, missing): (Vec<LfsPointer>, Vec<LfsPointer>) = selection
            .wanted
            .into_iter()
            .partition(|pointer| stored.contains(&pointer.oid));
        let mut left_out = selection.left_out;
        if !missing.is_empty() {
            let failed = self.fetch(repository, &mirror, &missing, progress).await?;
            let is_here =
                |pointer: &LfsPointer| failed.iter().all(|failed| failed.pointer.oid != pointer.oid);
            contents.extend(missing.iter().filter(|pointer| is_here(pointer)).cloned());
            left_out.extend(failed);
            let evicted = run_blocking(move || Ok::<_, EffectError>(store.evict())).await?;
            tracing::info!(
                %repository,
                commit = %commit.short(),
                contents = missing.len(),
                evicted = evicted.contents,
                evicted_bytes = evicted.bytes,
                duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                "contents of Git LFS fetched"
            );
        }
        drop(hold);
        for omission in &left_out {
            let (oid, reason) = (omission.pointer.oid.as_str(), omission.reason.as_str());
            let files = files
                .iter()
                .filter(|file| file.pointer.oid == omission.pointer.oid);
            let path = files.map(|file| file.path.as_str()).next().unwrap_or_default();
            tracing::warn!(%repository, path, oid, reason, "a file of Git LFS stays a pointer");
        }
        Ok(LfsListing { contents, left_out })
    }

    async fn fetch(
        &self,
        repository: &RepositoryName,
        mirror: &Arc<Path>,
        missing: &[LfsPointer],
        progress: &watch::Sender<CollectionState>,
    ) -> Result<Vec<LfsOmission>, EffectError> {
        if !self.mirrors.make_room().await? {
            let reason = "the disk of the reporter is nearly full (reporter.disk_floor_mib)";
            let leave_out = |pointer: &LfsPointer| LfsOmission {
                pointer: pointer.clone(),
                reason: reason.to_owned(),
            };
            return Ok(missing.iter().map(leave_out).collect());
        }
        let total: u64 = missing.iter().map(|pointer| pointer.size).sum();
        let done = Mutex::new(0_u64);
        let report = |bytes: u64| {
            let mut done = done.lock();
            *done += bytes;
            let percent = u8::try_from(done.saturating_mul(100) / total.max(1)).ok();
            progress.send_replace(CollectionState::Running { percent });
        };
        let deadline = Instant::now() + self.deadline;
        Ok(self
            .fetcher
            .fetch(repository, mirror, missing, deadline, report)
            .await)
    }
}

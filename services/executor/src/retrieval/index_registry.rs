//! Registry of open indexes, with their build progress per commit.

use std::{
    cell::RefCell,
    collections::HashMap,
    path::Path,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
};

use domain::CommitId;
use git::DiskFloor;
use parking_lot::Mutex;
use retrieval::{BlobId, CodeIndex, Error, IndexedTree, SearchAnswer, SearchRequest};
use tokio_util::sync::CancellationToken;

use super::{
    source::BlobCache,
    worker::{self, IndexBuildReport},
};
use crate::mirror::MirrorPath;

// The index lies in the mirror's folder, so that deleting the mirror also deletes it.
const FOLDER: &str = "code-index";

/// Indexes that workspaces use, with the queue of the thread that builds them.
pub(crate) struct IndexRegistry {
    /// Queue of the build thread; `None` when indexing is disabled.
    jobs: Option<mpsc::Sender<Arc<CommitIndex>>>,
    shelves: Mutex<HashMap<MirrorPath, Weak<RepositoryIndex>>>,
    stop: CancellationToken,
}

/// Index of one repository. While it is referenced, it stays open and its mirror is not deleted.
pub(crate) struct RepositoryIndex {
    pub(super) mirror: MirrorPath,
    index: Mutex<Option<Arc<CodeIndex>>>,
    commits: Mutex<HashMap<CommitId, Weak<CommitIndex>>>,
}

/// Index of one commit, searchable once it is built.
pub(crate) struct CommitIndex {
    pub(super) shelf: Arc<RepositoryIndex>,
    pub(super) commit: CommitId,
    percent: AtomicU32,
    built: OnceLock<IndexBuild>,
}

enum IndexBuild {
    Ready(Arc<CodeIndex>, Arc<IndexedTree>),
    /// Reason of the failure, for the caller of a search.
    Failed(&'static str),
}

/// State of a commit's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexStatus {
    /// The index can be searched.
    Ready,
    /// The build is in progress, with its percentage.
    Building(u32),
    /// The build failed, with the reason.
    Failed(&'static str),
}

impl IndexRegistry {
    /// Creates the registry. Without `is_on` nothing is indexed.
    pub(crate) fn new(is_on: bool, floor: DiskFloor) -> Self {
        let stop = CancellationToken::new();
        let jobs = is_on
            .then(|| worker::start_build_thread(floor, stop.clone()))
            .flatten();
        Self {
            jobs,
            shelves: Mutex::default(),
            stop,
        }
    }

    /// Returns the index of a commit and schedules its build if it is new. `None` when indexing is disabled.
    pub(crate) fn want(&self, mirror: &MirrorPath, commit: &CommitId) -> Option<Arc<CommitIndex>> {
        let jobs = self.jobs.as_ref()?;
        let mut shelves = self.shelves.lock();
        // The map holds weak references, so entries of closed indexes are removed here.
        shelves.retain(|_, shelf| shelf.strong_count() > 0);
        let shelf = shelves.get(mirror).and_then(Weak::upgrade).unwrap_or_else(|| {
            let shelf = Arc::new(RepositoryIndex::new(mirror));
            shelves.insert(Arc::clone(mirror), Arc::downgrade(&shelf));
            shelf
        });
        drop(shelves);
        let (searchable, is_new) = shelf.commit(commit);
        if is_new {
            // The error is ignored: if the thread has ended, the index never becomes ready, and its status
            // reports that.
            let _ = jobs.send(Arc::clone(&searchable));
        }
        Some(searchable)
    }

    /// Cancels the current and all further builds.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }
}

impl Drop for IndexRegistry {
    fn drop(&mut self) {
        self.stop();
    }
}

impl RepositoryIndex {
    fn new(mirror: &MirrorPath) -> Self {
        Self {
            mirror: Arc::clone(mirror),
            index: Mutex::default(),
            commits: Mutex::default(),
        }
    }

    /// Returns the entry of a commit. The flag is true if the entry is new.
    fn commit(self: &Arc<Self>, commit: &CommitId) -> (Arc<CommitIndex>, bool) {
        let mut commits = self.commits.lock();
        commits.retain(|_, searchable| searchable.strong_count() > 0);
        if let Some(known) = commits.get(commit).and_then(Weak::upgrade) {
            return (known, false);
        }
        let searchable = Arc::new(CommitIndex {
            shelf: Arc::clone(self),
            commit: commit.clone(),
            percent: AtomicU32::new(0),
            built: OnceLock::new(),
        });
        commits.insert(commit.clone(), Arc::downgrade(&searchable));
        (searchable, true)
    }

    /// Returns the index, opening it if necessary. Blocks.
    pub(super) fn index(&self) -> Result<Arc<CodeIndex>, Error> {
        let mut open = self.index.lock();
        if let Some(index) = &*open {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(CodeIndex::open(&self.mirror.join(FOLDER))?);
        *open = Some(Arc::clone(&index));
        Ok(index)
    }
}

impl CommitIndex {
    pub(crate) fn status(&self) -> IndexStatus {
        match self.built.get() {
            None => IndexStatus::Building(self.percent.load(Ordering::Relaxed)),
            Some(IndexBuild::Ready(..)) => IndexStatus::Ready,
            Some(IndexBuild::Failed(why)) => IndexStatus::Failed(why),
        }
    }

    /// Searches the index; `None` when it is not ready. Blocks.
    pub(crate) fn search(&self, request: &SearchRequest<'_>) -> Option<Result<SearchAnswer, Error>> {
        let Some(IndexBuild::Ready(index, tree)) = self.built.get() else {
            return None;
        };
        let blobs = RefCell::new(BlobCache::open(&self.shelf.mirror).ok()?);
        let read = |blob: BlobId| blobs.borrow_mut().content(blob);
        Some(index.search(tree, request, &read))
    }

    /// Returns the blob of a path at this commit; `None` when the index is not ready or the path is not a
    /// file in it.
    pub(crate) fn blob(&self, path: &Path) -> Option<BlobId> {
        match self.built.get()? {
            IndexBuild::Ready(_, tree) => tree.blob(path.to_str()?),
            IndexBuild::Failed(_) => None,
        }
    }

    /// Builds the index of a commit in the calling thread. Also returns the statistics if the build
    /// succeeded. Blocks.
    pub(crate) fn built(mirror: &MirrorPath, commit: &CommitId) -> (Arc<Self>, Option<IndexBuildReport>) {
        let (searchable, _) = Arc::new(RepositoryIndex::new(mirror)).commit(commit);
        let took = worker::build_index(&searchable, DiskFloor(0), &CancellationToken::new());
        (searchable, took)
    }

    pub(super) fn progress(&self, percent: u32) {
        self.percent.store(percent, Ordering::Relaxed);
    }

    pub(super) fn ready(&self, index: Arc<CodeIndex>, tree: Arc<IndexedTree>) {
        // The result is ignored: only the build thread sets the state, once.
        let _ = self.built.set(IndexBuild::Ready(index, tree));
    }

    pub(super) fn failed(&self, why: &'static str) {
        let _ = self.built.set(IndexBuild::Failed(why));
    }
}

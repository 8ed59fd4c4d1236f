//! Which indexes are open, and how far each commit is.

use std::{
    cell::RefCell,
    collections::HashMap,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
};

use domain::CommitId;
use git::DiskFloor;
use retrieval::{Answer, BlobId, Error, Index, Request, Tree};
use tokio_util::sync::CancellationToken;

use super::{
    source::Blobs,
    worker::{self, Took},
};
use crate::mirror::MirrorPath;

/// In the folder of a mirror, so that it goes with the mirror.
const FOLDER: &str = "code-index";

/// The indexes that workspaces use, and the thread that builds them.
pub(crate) struct Indexes {
    /// None: nothing is indexed.
    jobs: Option<mpsc::Sender<Arc<Searchable>>>,
    shelves: Mutex<HashMap<MirrorPath, Weak<Shelf>>>,
    stop: CancellationToken,
}

/// The index of one repository. It stays open, and its mirror where it is, as long as somebody uses it.
pub(crate) struct Shelf {
    pub(super) mirror: MirrorPath,
    index: Mutex<Option<Arc<Index>>>,
    commits: Mutex<HashMap<CommitId, Weak<Searchable>>>,
}

/// One commit of a repository, to be searched once it is indexed.
pub(crate) struct Searchable {
    pub(super) shelf: Arc<Shelf>,
    pub(super) commit: CommitId,
    percent: AtomicU32,
    built: OnceLock<Built>,
}

enum Built {
    Ready(Arc<Index>, Arc<Tree>),
    /// Why not, for whoever asks.
    Failed(&'static str),
}

/// How far the index of a commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// It can be searched.
    Ready,
    /// So many percent are done.
    Building(u32),
    /// It will not be there, for this reason.
    Failed(&'static str),
}

impl Indexes {
    /// Without `is_on` nothing is ever indexed.
    pub(crate) fn new(is_on: bool, floor: DiskFloor) -> Self {
        let stop = CancellationToken::new();
        let jobs = is_on.then(|| worker::start(floor, stop.clone())).flatten();
        Self {
            jobs,
            shelves: Mutex::default(),
            stop,
        }
    }

    /// The index of a commit, which is built soon unless it is there. Nothing when there are none.
    pub(crate) fn want(&self, mirror: &MirrorPath, commit: &CommitId) -> Option<Arc<Searchable>> {
        let jobs = self.jobs.as_ref()?;
        let mut shelves = locked(&self.shelves);
        shelves.retain(|_, shelf| shelf.strong_count() > 0);
        let shelf = shelves.get(mirror).and_then(Weak::upgrade).unwrap_or_else(|| {
            let shelf = Arc::new(Shelf::new(mirror));
            shelves.insert(Arc::clone(mirror), Arc::downgrade(&shelf));
            shelf
        });
        drop(shelves);
        let (searchable, is_new) = shelf.commit(commit);
        if is_new {
            // Without the thread it is never ready, and whoever asks is told so.
            let _ = jobs.send(Arc::clone(&searchable));
        }
        Some(searchable)
    }

    /// Ends what is being built.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }
}

impl Drop for Indexes {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shelf {
    fn new(mirror: &MirrorPath) -> Self {
        Self {
            mirror: Arc::clone(mirror),
            index: Mutex::default(),
            commits: Mutex::default(),
        }
    }

    /// What is known of a commit, and whether that is nothing yet.
    fn commit(self: &Arc<Self>, commit: &CommitId) -> (Arc<Searchable>, bool) {
        let mut commits = locked(&self.commits);
        commits.retain(|_, searchable| searchable.strong_count() > 0);
        if let Some(known) = commits.get(commit).and_then(Weak::upgrade) {
            return (known, false);
        }
        let searchable = Arc::new(Searchable {
            shelf: Arc::clone(self),
            commit: commit.clone(),
            percent: AtomicU32::new(0),
            built: OnceLock::new(),
        });
        commits.insert(commit.clone(), Arc::downgrade(&searchable));
        (searchable, true)
    }

    /// The index, opened when it is not. Blocks.
    pub(super) fn index(&self) -> Result<Arc<Index>, Error> {
        let mut open = locked(&self.index);
        if let Some(index) = &*open {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(Index::open(&self.mirror.join(FOLDER))?);
        *open = Some(Arc::clone(&index));
        Ok(index)
    }
}

impl Searchable {
    pub(crate) fn status(&self) -> Status {
        match self.built.get() {
            None => Status::Building(self.percent.load(Ordering::Relaxed)),
            Some(Built::Ready(..)) => Status::Ready,
            Some(Built::Failed(why)) => Status::Failed(why),
        }
    }

    /// Searches it; nothing when it is not ready. Blocks.
    pub(crate) fn search(&self, request: &Request<'_>) -> Option<Result<Answer, Error>> {
        let Some(Built::Ready(index, tree)) = self.built.get() else {
            return None;
        };
        let blobs = RefCell::new(Blobs::open(&self.shelf.mirror).ok()?);
        let read = |blob: BlobId| blobs.borrow_mut().content(blob);
        Some(index.search(tree, request, &read))
    }

    /// The content that a path has at this commit; nothing when it is not ready or has no such file.
    pub(crate) fn blob(&self, path: &Path) -> Option<BlobId> {
        match self.built.get()? {
            Built::Ready(_, tree) => tree.blob(path.to_str()?),
            Built::Failed(_) => None,
        }
    }

    /// Of a commit of this mirror, indexed here and now; also what that took, when it went well. Blocks.
    pub(crate) fn built(mirror: &MirrorPath, commit: &CommitId) -> (Arc<Self>, Option<Took>) {
        let (searchable, _) = Arc::new(Shelf::new(mirror)).commit(commit);
        let took = worker::build(&searchable, DiskFloor(0), &CancellationToken::new());
        (searchable, took)
    }

    pub(super) fn progress(&self, percent: u32) {
        self.percent.store(percent, Ordering::Relaxed);
    }

    pub(super) fn ready(&self, index: Arc<Index>, tree: Arc<Tree>) {
        // Only the one thread that builds says so.
        let _ = self.built.set(Built::Ready(index, tree));
    }

    pub(super) fn failed(&self, why: &'static str) {
        let _ = self.built.set(Built::Failed(why));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

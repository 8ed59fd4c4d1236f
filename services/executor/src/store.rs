//! Data on the disk for later runs, deleted when space is short: mirrors, prepared checkouts, results of
//! setup.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use git::{DiskFloor, FetchSettings, LfsStore};

use crate::{
    mirror::MirrorStore,
    retrieval::IndexRegistry,
    setup::{CheckoutPool, cache::SetupCache},
    workspace::WorkspaceStart,
};

/// Stores of all kinds, in the data folder.
pub(crate) struct DiskStore {
    pub(crate) mirrors: MirrorStore,
    /// Contents of Git LFS, which lie in the folders of the mirrors.
    pub(crate) lfs: Arc<LfsStore>,
    pub(crate) pool: CheckoutPool,
    pub(crate) setups: SetupCache,
    /// Indexes, which lie in the folders of the mirrors.
    pub(crate) indexes: IndexRegistry,
    floor: DiskFloor,
    folder: PathBuf,
}

/// Limits of the stores.
pub(crate) struct DiskStoreLimits {
    /// Number of prepared checkouts.
    pub(crate) checkouts: usize,
    /// Size of all setup results.
    pub(crate) setup_bytes: u64,
    /// Size of all contents of Git LFS that no workspace uses.
    pub(crate) lfs_bytes: u64,
    pub(crate) floor: DiskFloor,
}

impl DiskStore {
    pub(crate) fn new(
        data_dir: &Path,
        limits: DiskStoreLimits,
        has_index: bool,
        fetches: FetchSettings,
    ) -> Self {
        let floor = limits.floor;
        Self {
            mirrors: MirrorStore::new(data_dir.join("mirrors"), fetches),
            lfs: Arc::new(LfsStore::new(data_dir.join("mirrors"), limits.lfs_bytes)),
            pool: CheckoutPool::new(data_dir.join("ready"), limits.checkouts),
            setups: SetupCache::new(data_dir, limits.setup_bytes, floor),
            indexes: IndexRegistry::new(has_index, floor),
            floor,
            folder: data_dir.to_owned(),
        }
    }

    /// Deletes data while the free disk space is below the floor, beginning with what is cheapest to rebuild.
    /// Blocks.
    pub(crate) fn make_room(&self) {
        if self.has_room() {
            return;
        }
        tracing::warn!("the disk is nearly full; what is kept for later runs goes");
        self.setups.tidy();
        if !self.has_room() {
            self.pool.clear();
            self.mirrors.make_room(self.floor);
        }
    }

    /// Enforces all limits, and prepares a checkout for the next run of this kind if there is room. Blocks.
    pub(crate) fn make_ready(&self, next: WorkspaceStart) {
        self.setups.tidy();
        self.make_room();
        if self.has_room() {
            self.pool.prepare(next);
        }
    }

    fn has_room(&self) -> bool {
        self.floor.has_room(&self.folder)
    }
}

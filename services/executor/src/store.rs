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

impl DiskStore {
    /// Creates the stores, with at most `checkouts` prepared checkouts, `setup_bytes` of setup results, and `lfs_bytes` of
    /// unused contents of Git LFS.
    pub(crate) fn new(
        data_dir: &Path,
        checkouts: usize,
        (setup_bytes, lfs_bytes): (u64, u64),
        has_index: bool,
        (floor, fetches): (DiskFloor, FetchSettings),
    ) -> Self {
        Self {
            mirrors: MirrorStore::new(data_dir.join("mirrors"), fetches),
            lfs: Arc::new(LfsStore::new(data_dir.join("mirrors"), lfs_bytes)),
            pool: CheckoutPool::new(data_dir.join("ready"), checkouts),
            setups: SetupCache::new(data_dir, setup_bytes, floor),
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

//! Data on the disk for later runs, deleted when space is short: mirrors, prepared checkouts, results of
//! setup.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use domain::cause::format_error_chain;
use git::{DiskFloor, FetchSettings, LfsStore};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    mirror::MirrorStore,
    retrieval::IndexRegistry,
    setup::{CheckoutPool, cache::SetupCache},
    workspace::{Workspace, WorkspaceStart},
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

    /// Prepares a checkout for the next run in the background. It begins when the token is cancelled, because it would
    /// slow down the opening of the present run.
    pub(crate) fn prepare_after(
        self: &Arc<Self>,
        opened: CancellationToken,
        next: WorkspaceStart,
    ) -> JoinHandle<()> {
        let store = Arc::clone(self);
        tokio::spawn(async move {
            opened.cancelled().await;
            let prepared = tokio::task::spawn_blocking(move || store.make_ready(next));
            if let Err(error) = prepared.await {
                tracing::error!(error = %format_error_chain(&error), "no checkout could be made ready");
            }
        })
    }

    /// Enforces all limits, and prepares a checkout for the next run of this kind if there is room. Blocks.
    fn make_ready(&self, next: WorkspaceStart) {
        self.setups.tidy();
        self.make_room();
        if self.has_room() {
            self.pool.prepare(next);
        }
    }

    /// Keeps the files of an untouched workspace for the next run of its kind, if there is room. Those of another one are
    /// deleted. Blocks.
    pub(crate) fn keep_untouched(&self, workspace: Workspace) {
        if !workspace.is_touched() && self.has_room() {
            self.pool.keep(workspace);
        }
    }

    fn has_room(&self) -> bool {
        self.floor.has_room(&self.folder)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn checkout_waits_for_end_of_opening() {
        let folder = tempfile::TempDir::new().unwrap();
        let mirror = git::BareRepository::init_bare(&folder.path().join("mirror")).unwrap();
        let base = {
            let git = mirror.objects();
            let mut tree = git.treebuilder(None).unwrap();
            tree.insert("a", git.blob(b"a").unwrap(), 0o100_644).unwrap();
            let tree = git.find_tree(tree.write().unwrap()).unwrap();
            let who = git2::Signature::new("A", "a@acme.example", &git2::Time::new(1, 0)).unwrap();
            let id = git.commit(None, &who, &who, "x", &tree, &[]).unwrap();
            git::convert_commit_id(id).unwrap()
        };
        let limits = DiskStoreLimits {
            checkouts: 1,
            setup_bytes: 0,
            lfs_bytes: 0,
            floor: DiskFloor(0),
        };
        let store = DiskStore::new(folder.path(), limits, false, FetchSettings::default());
        let (store, opened) = (Arc::new(store), CancellationToken::new());
        let start = WorkspaceStart::sample(folder.path(), base);
        let mut preparing = store.prepare_after(opened.clone(), start.clone());
        // The paused clock moves only when no task runs, a blocking one included.
        let early = tokio::time::timeout(Duration::from_secs(60), &mut preparing).await;
        assert!(early.is_err() && store.pool.take(&start).is_none());
        opened.cancel();
        preparing.await.unwrap();
        assert!(store.pool.take(&start).is_some());
    }
}

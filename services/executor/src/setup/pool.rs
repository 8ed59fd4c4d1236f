//! Prepared checkouts of recently used repositories.

use std::{collections::VecDeque, path::PathBuf};

use domain::RepositoryName;
use parking_lot::Mutex;

use crate::workspace::{PreparedCheckout, Workspace, WorkspaceStart};

/// Checkouts that wait for a run, the newest last.
pub(crate) struct CheckoutPool {
    folder: PathBuf,
    max: usize,
    ready: Mutex<VecDeque<(PoolKey, PreparedCheckout)>>,
}

type PoolKey = (RepositoryName, String);

impl CheckoutPool {
    /// Creates a pool of at most `max` checkouts.
    pub(crate) fn new(folder: PathBuf, max: usize) -> Self {
        Self {
            folder,
            max,
            ready: Mutex::default(),
        }
    }

    /// Takes a prepared checkout that fits this start.
    pub(crate) fn take(&self, start: &WorkspaceStart) -> Option<PreparedCheckout> {
        let key = pool_key(start);
        let mut ready = self.ready.lock();
        let at = ready.iter().position(|(other, _)| *other == key)?;
        let taken = ready.remove(at).map(|(_, ready)| ready);
        drop(ready);
        // With other contents of Git LFS, files that no commit changed would differ.
        taken.filter(|taken| taken.has_contents(&start.lfs))
    }

    /// Prepares a checkout for the next run of this kind, unless one exists. If the pool is full, the
    /// checkout that was unused for the longest time is deleted. Blocks.
    pub(crate) fn prepare(&self, start: WorkspaceStart) {
        let key = pool_key(&start);
        // The lock is free during the checkout, which takes long. At worst two calls prepare the same
        // one.
        if self.max == 0 || self.ready.lock().iter().any(|(other, _)| *other == key) {
            return;
        }
        match PreparedCheckout::create(&self.folder, start) {
            Ok(made) => {
                let mut ready = self.ready.lock();
                ready.push_back((key, made));
                let excess = ready.len().saturating_sub(self.max);
                // Deleted after the lock is released, because a deletion takes long.
                let gone: Vec<_> = ready.drain(..excess).collect();
                drop(ready);
                drop(gone);
            }
            Err(problem) => tracing::warn!(%problem, "no checkout could be made ready"),
        }
    }

    /// Keeps the checkout of an untouched workspace, also beside others of its repository and branch. A full pool
    /// deletes it: a busy repository must not displace the checkouts of others. Blocks.
    pub(crate) fn keep(&self, untouched: Workspace) {
        let key = (untouched.repository.clone(), untouched.git.base_branch.clone());
        if self.ready.lock().len() >= self.max {
            return;
        }
        match PreparedCheckout::from_untouched(&self.folder, untouched) {
            Ok(kept) => self.ready.lock().push_back((key, kept)),
            Err(problem) => tracing::warn!(%problem, "the files of an untouched workspace could not be kept"),
        }
    }

    /// Deletes all checkouts. Blocks.
    pub(crate) fn clear(&self) {
        let gone = std::mem::take(&mut *self.ready.lock());
        drop(gone);
    }
}

fn pool_key(start: &WorkspaceStart) -> PoolKey {
    (start.repository.clone(), start.base_branch.clone())
}

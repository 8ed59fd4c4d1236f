//! Ready checkouts of the repositories used last.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use domain::RepositoryName;

use crate::workspace::{Ready, Start};

/// Checkouts that wait for a run, the one that was made last at the end.
pub(crate) struct Pool {
    folder: PathBuf,
    max: usize,
    ready: Mutex<VecDeque<(Key, Ready)>>,
}

type Key = (RepositoryName, String);

impl Pool {
    /// At most `max` checkouts, one for each repository and base branch.
    pub(crate) fn new(folder: PathBuf, max: usize) -> Self {
        Self {
            folder,
            max,
            ready: Mutex::default(),
        }
    }

    /// A checkout for this start, if one is ready.
    pub(crate) fn take(&self, start: &Start) -> Option<Ready> {
        let key = key(start);
        let mut ready = self.lock();
        let at = ready.iter().position(|(other, _)| *other == key)?;
        ready.remove(at).map(|(_, ready)| ready)
    }

    /// Makes one ready for the next run like this, unless there is one. The one that was
    /// not asked for the longest goes for it. Blocks.
    pub(crate) fn prepare(&self, start: Start) {
        let key = key(&start);
        if self.max == 0 || self.lock().iter().any(|(other, _)| *other == key) {
            return;
        }
        match Ready::create(&self.folder, start) {
            Ok(made) => {
                let mut ready = self.lock();
                ready.push_back((key, made));
                let excess = ready.len().saturating_sub(self.max);
                let gone: Vec<_> = ready.drain(..excess).collect();
                drop(ready);
                drop(gone);
            }
            Err(problem) => tracing::warn!(%problem, "no checkout could be made ready"),
        }
    }

    /// Lets all go. Blocks.
    pub(crate) fn clear(&self) {
        let gone = std::mem::take(&mut *self.lock());
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Key, Ready)>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(start: &Start) -> Key {
    (start.repository.clone(), start.base_branch.clone())
}

//! What a process says again and again is written down once a minute.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);

/// When something was last written, by what it is about.
pub(crate) struct OnceAMinute<K>(Mutex<BTreeMap<K, Instant>>);

impl<K> Default for OnceAMinute<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord> OnceAMinute<K> {
    /// True at most once a minute for each key.
    pub(crate) fn is_due(&self, key: K) -> bool {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = written.get(&key).is_none_or(|last| last.elapsed() >= MINUTE);
        if is_due {
            written.insert(key, Instant::now());
        }
        is_due
    }
}

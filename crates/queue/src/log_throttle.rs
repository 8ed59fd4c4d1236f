//! Limit of repeated log lines and records to one per minute.

use std::{collections::BTreeMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);

/// Time of the last write for each key.
pub(crate) struct MinuteThrottle<K>(Mutex<BTreeMap<K, Instant>>);

impl<K> Default for MinuteThrottle<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord> MinuteThrottle<K> {
    /// True at most once a minute for each key; the call counts as a write then.
    pub(crate) fn is_due(&self, key: K) -> bool {
        let mut written = self.0.lock();
        let is_due = written.get(&key).is_none_or(|last| last.elapsed() >= MINUTE);
        if is_due {
            written.insert(key, Instant::now());
        }
        is_due
    }
}

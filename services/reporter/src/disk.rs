//! The disk that holds mirrors and quarantines, when it is full.

use std::time::Duration;

/// How long a report rests while the disk is full.
pub(crate) const DISK_WAIT: Duration = Duration::from_secs(60);

/// Whether a text says that a disk has no room.
pub(crate) fn is_disk_full(text: &str) -> bool {
    ["No space left on device", "Disk quota exceeded"]
        .iter()
        .any(|words| text.contains(words))
}

//! The time that records show to people.

use domain::Timestamp;

/// When something was written: for people only, nothing is decided by it.
pub(crate) fn clock() -> Timestamp {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_unix_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

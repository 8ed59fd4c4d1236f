//! Wall-clock time in records.

use domain::Timestamp;

/// Current wall-clock time, for display in records. The waker compares it with a tolerance.
pub(crate) fn read_wall_clock() -> Timestamp {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_unix_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

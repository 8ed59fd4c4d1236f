//! Wall clock, read in one place.

use std::time::{SystemTime, UNIX_EPOCH};

use domain::Timestamp;

/// Current wall-clock time, to the millisecond.
pub fn read_wall_clock() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_ms(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

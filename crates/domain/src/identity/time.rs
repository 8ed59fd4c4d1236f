//! Points in time as data.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// A point in time in Unix milliseconds. Callers provide it from their clock; this crate reads no clock.
// Folds and decisions receive their times as data, so that a replay gives the same result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Creates the time `ms` milliseconds after 1970-01-01T00:00:00Z.
    pub const fn from_unix_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn unix_ms(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970-01-01T00:00:00Z, the format of git.
    pub const fn unix_s(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Returns the time `ms` milliseconds later.
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Returns the time after a wait. The result saturates.
    pub fn plus(self, wait: Duration) -> Self {
        self.plus_ms(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
    }

    /// Returns the time that passed since an earlier point; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        // The two times may come from clocks of different machines, so a negative difference counts as
        // none.
        let ms = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(ms).unwrap_or_default())
    }

    /// Parses RFC 3339, and Jira's variant of it (`2026-11-21T10:00:00.000+0000`); `None` for other texts.
    pub fn parse(text: &str) -> Option<Self> {
        let parsed = OffsetDateTime::parse(text, &Rfc3339)
            .ok()
            .or_else(|| OffsetDateTime::parse(&with_colon_in_offset(text)?, &Rfc3339).ok())?;
        i64::try_from(parsed.unix_timestamp_nanos() / 1_000_000)
            .ok()
            .map(Self)
    }
}

// Jira writes offsets without a colon (`+0200`), which RFC 3339 does not allow.
fn with_colon_in_offset(text: &str) -> Option<String> {
    let split = text
        .len()
        .checked_sub(2)
        .filter(|at| text.is_char_boundary(*at))?;
    Some(format!("{}:{}", &text[..split], &text[split..]))
}

impl fmt::Display for Timestamp {
    /// Formats the time as RFC 3339 in UTC, e.g. `2026-11-21T10:00:00.123Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instant = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000);
        match instant.map(|instant| instant.format(&Rfc3339)) {
            Ok(Ok(text)) => f.write_str(&text),
            Ok(Err(_)) | Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

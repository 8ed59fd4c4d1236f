//! Limits that this process knows, by their keys at the server.

use std::{collections::HashMap, time::Duration};

use domain::limits::{LimitClass, PrimaryQuota, WriteBucket};
use tokio::time::Instant;

use super::{
    LONGEST_IN_PLACE,
    store::{LimitKeys, SharedWaits},
};

// Number of entries at which expired ones are removed.
const MANY: usize = 1_000;

/// Decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitVerdict {
    /// The request may be sent after this delay.
    Go(Duration),
    /// The service refuses all requests of the class for this time.
    Closed(LimitClass, Duration),
    /// The request is a write, and earlier writes have to be spaced out for this time.
    Early(Duration),
}

/// Result of recording a quota.
pub(super) struct NotedQuota {
    pub(super) quota: PrimaryQuota,
    /// True for another window, or another tenth of the limit.
    pub(super) is_news: bool,
    /// True for the first scarce quota of its window.
    pub(super) is_newly_scarce: bool,
}

#[derive(Debug, Default)]
pub(super) struct LocalLimits {
    closed: HashMap<String, Instant>,
    /// End of the time that the earlier writes of a bucket occupy.
    ahead: HashMap<String, Instant>,
    quotas: HashMap<String, PrimaryQuota>,
}

impl LocalLimits {
    /// Longest known wait of both classes.
    pub(super) fn closed(&self, names: &LimitKeys, now: Instant) -> Option<LimitVerdict> {
        let wait = |class: LimitClass| {
            let until = self.closed.get(names.of_class(class)).copied();
            let left = until.map(|until| until.saturating_duration_since(now));
            left.filter(|left| !left.is_zero()).map(|left| (left, class))
        };
        // A secondary limit closes all of an account, a primary one only its kind of request.
        let waits = [LimitClass::Secondary, LimitClass::Primary].into_iter();
        let longest = waits.filter_map(wait).max_by_key(|(left, _)| *left);
        longest.map(|(left, class)| LimitVerdict::Closed(class, left))
    }

    /// Closes a limit until an instant. Returns true when this extends the closure; it never shortens one.
    pub(super) fn close(&mut self, name: &str, until: Instant) -> bool {
        raise_instant(&mut self.closed, name, until)
    }

    /// Applies the shared state and decides with it.
    pub(super) fn learn(
        &mut self,
        names: &LimitKeys,
        buckets: &[WriteBucket],
        known: &SharedWaits,
        now: Instant,
    ) -> LimitVerdict {
        for (class, left) in known.closed {
            self.close(names.of_class(class), now + left);
        }
        for (bucket, ahead) in buckets.iter().zip(&known.ahead) {
            raise_instant(&mut self.ahead, &names.of_bucket(bucket), now + *ahead);
        }
        match self.closed(names, now) {
            Some(closed) => closed,
            None if known.wait > LONGEST_IN_PLACE => LimitVerdict::Early(known.wait),
            None => LimitVerdict::Go(known.wait),
        }
    }

    /// Decides by this process's own state.
    pub(super) fn admit(&mut self, names: &LimitKeys, buckets: &[WriteBucket], now: Instant) -> LimitVerdict {
        if let Some(closed) = self.closed(names, now) {
            return closed;
        }
        let ahead = |book: &Self, bucket: &WriteBucket| {
            let until = book.ahead.get(&names.of_bucket(bucket)).copied();
            until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
        };
        let waits = buckets.iter().map(|bucket| bucket.wait(ahead(self, bucket)));
        let wait = waits.max().unwrap_or_default();
        if wait > LONGEST_IN_PLACE {
            return LimitVerdict::Early(wait);
        }
        for bucket in buckets {
            let until = now + ahead(self, bucket) + bucket.interval;
            raise_instant(&mut self.ahead, &names.of_bucket(bucket), until);
        }
        LimitVerdict::Go(wait)
    }

    pub(super) fn note(&mut self, names: &LimitKeys, quota: PrimaryQuota) -> NotedQuota {
        let before = self.quotas.get(&names.quota).copied();
        let merged = before.map_or(quota, |before| before.merged(quota));
        self.quotas.insert(names.quota.clone(), merged);
        let known = before.filter(|before| before.reset_unix_s == merged.reset_unix_s);
        // The value changes with each request. Sharing only each tenth keeps the writes to Redis few.
        NotedQuota {
            quota: merged,
            is_news: known
                .is_none_or(|known| compute_remaining_tenth(known) != compute_remaining_tenth(merged)),
            is_newly_scarce: merged.is_scarce() && !known.is_some_and(PrimaryQuota::is_scarce),
        }
    }
}

fn compute_remaining_tenth(quota: PrimaryQuota) -> u64 {
    quota.remaining.saturating_mul(10) / quota.limit.max(1)
}

/// Stores the later of two instants under a name; returns true when that is the new one.
fn raise_instant(instants: &mut HashMap<String, Instant>, name: &str, until: Instant) -> bool {
    if instants.len() >= MANY {
        let now = Instant::now();
        instants.retain(|_, end| *end > now);
    }
    match instants.get_mut(name) {
        Some(known) if *known >= until => false,
        Some(known) => {
            *known = until;
            true
        }
        None => {
            instants.insert(name.to_owned(), until);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::limits::{LimitedRequest, WritePace};
    use proptest::prelude::*;

    use super::*;

    fn build_limit_keys() -> LimitKeys {
        LimitKeys::of(&LimitedRequest {
            account: "github:writer:default",
            resource: "core",
            pace: None,
        })
    }

    proptest! {
        #[test]
        fn account_stays_closed_until_latest_end(
            observed in prop::collection::vec((any::<bool>(), 1..10_000_u64), 1..20)
        ) {
            let (mut book, now, names) = (LocalLimits::default(), Instant::now(), build_limit_keys());
            let mut before = Duration::ZERO;
            for (is_primary, ms) in &observed {
                let class = if *is_primary { LimitClass::Primary } else { LimitClass::Secondary };
                book.close(names.of_class(class), now + Duration::from_millis(*ms));
                let Some(LimitVerdict::Closed(_, wait)) = book.closed(&names, now) else {
                    return Err(TestCaseError::fail("it is open"));
                };
                prop_assert!(wait >= before);
                before = wait;
            }
            let latest = observed.iter().map(|(_, ms)| *ms).max().unwrap_or_default();
            prop_assert_eq!(before, Duration::from_millis(latest));
            prop_assert_eq!(book.closed(&names, now + Duration::from_millis(latest)), None);
        }
    }

    #[test]
    fn only_writes_are_paced_with_reported_wait() {
        let (mut book, now, names) = (LocalLimits::default(), Instant::now(), build_limit_keys());
        let pace = WritePace {
            a_minute: 80,
            an_hour: 500,
        };
        let buckets: Vec<WriteBucket> = pace.buckets().collect();
        let mut admit = |after_s: u64| book.admit(&names, &buckets, now + Duration::from_secs(after_s));
        for _ in 0..20 {
            assert_eq!(admit(0), LimitVerdict::Go(Duration::ZERO));
        }
        assert_eq!(admit(0), LimitVerdict::Go(Duration::from_secs(1)));
        assert_eq!(admit(0), LimitVerdict::Go(Duration::from_secs(2)));
        assert_eq!(admit(0), LimitVerdict::Early(Duration::from_secs(3)));
        assert_eq!(admit(1), LimitVerdict::Go(Duration::from_secs(2)));
        assert_eq!(admit(61), LimitVerdict::Go(Duration::ZERO));
    }

    #[test]
    fn quota_is_news_once_per_tenth() {
        let mut book = LocalLimits::default();
        let mut note = |reset_unix_s, remaining| {
            let limit = 100;
            book.note(
                &build_limit_keys(),
                PrimaryQuota {
                    reset_unix_s,
                    limit,
                    remaining,
                },
            )
        };
        assert!(note(1, 99).is_news);
        assert!(!note(1, 98).is_news);
        assert!(note(1, 85).is_news);
        let late = note(1, 95);
        assert!(!late.is_news && late.quota.remaining == 85);
        assert!(note(1, 10).is_newly_scarce);
        assert!(!note(1, 5).is_newly_scarce);
        let next = note(2, 100);
        assert!(next.is_news && next.quota.remaining == 100);
    }
}

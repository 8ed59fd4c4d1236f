//! Rate limits of external services: the interface through which a client asks before each request and
//! reports each answer. [`LimitGate`] hides the location of the shared state.

use std::{fmt::Debug, pin::Pin, time::Duration};

/// Future of a call to the limit gate.
pub type LimitGateFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Kind of the limit that refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitClass {
    /// Number of requests per account and window, for each kind of request.
    Primary,
    /// Limit on bursts, which holds for all requests of the account.
    Secondary,
}

impl LimitClass {
    /// The name in metrics and keys.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Secondary => "secondary",
        }
    }
}

/// Maximum writes of an account over all services; 0: unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WritePace {
    /// Writes in any 60 seconds.
    pub a_minute: u32,
    /// Writes in any 60 minutes.
    pub an_hour: u32,
}

/// Token bucket for writes: a burst, then a fixed interval. No window exceeds its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBucket {
    /// Its name, one per length of the window.
    pub name: &'static str,
    /// Number of writes that may be made at once.
    pub burst: u32,
    /// Time between two further writes.
    pub interval: Duration,
}

impl WriteBucket {
    fn of(name: &'static str, limit: u32, window_ms: u64) -> Option<Self> {
        let burst = (limit / 4).max(1);
        // The burst counts against the limit: with the full refill on top, a window would exceed it.
        let interval_ms = match limit.saturating_sub(burst) {
            // The burst is the whole limit, so the next write waits until the window is over.
            0 => window_ms + 1,
            others => window_ms.div_ceil(others.into()),
        };
        (limit > 0).then(|| Self {
            name,
            burst,
            // Whole milliseconds, because the shared state in Redis counts in milliseconds.
            interval: Duration::from_millis(interval_ms),
        })
    }

    /// Returns the wait of the next write while the bucket is ahead of the clock by `ahead`.
    pub fn wait(&self, ahead: Duration) -> Duration {
        ahead.saturating_sub(self.interval * (self.burst - 1))
    }
}

impl WritePace {
    /// Returns the buckets: a quarter of each limit as a burst, the rest spread over the window.
    ///
    /// With 80 writes per minute, that is one per second after the first 20. GitHub asks clients with many
    /// writes to pause a second between them.
    pub fn buckets(self) -> impl Iterator<Item = WriteBucket> {
        [
            WriteBucket::of("minute", self.a_minute, 60 * 1000),
            WriteBucket::of("hour", self.an_hour, 60 * 60 * 1000),
        ]
        .into_iter()
        .flatten()
    }
}

/// A request that a client is about to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitedRequest<'a> {
    /// Account that the limits hold for: service, role and instance, e.g.
    /// `github:writer:default:installation-7`.
    pub account: &'a str,
    /// Kind of request, each with a separate primary limit, e.g. `graphql`.
    pub resource: &'a str,
    /// Maximum writes of the account; absent for reads and for uncounted writes.
    pub pace: Option<WritePace>,
}

/// Remaining requests of a primary limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrimaryQuota {
    /// End of the window, in seconds since 1970 by the clock of the service. It identifies the window.
    pub reset_unix_s: u64,
    /// Number of requests per window.
    pub limit: u64,
    /// Number of remaining requests.
    pub remaining: u64,
}

impl PrimaryQuota {
    /// Merges two observations, independent of the order of their answers: the later window, and within one
    /// window the lower remainder.
    #[must_use]
    pub const fn merged(self, other: Self) -> Self {
        // Answers of parallel requests arrive in any order. Within a window the remainder only falls, so
        // the lowest one is the newest.
        if other.reset_unix_s > self.reset_unix_s
            || (other.reset_unix_s == self.reset_unix_s && other.remaining < self.remaining)
        {
            other
        } else {
            self
        }
    }

    /// Returns true when a tenth or less remains.
    pub const fn is_scarce(self) -> bool {
        self.remaining.saturating_mul(10) <= self.limit
    }
}

/// Rate limit information of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitObservation {
    /// Remaining primary limit with the remaining time of its window.
    pub quota: Option<(PrimaryQuota, Duration)>,
    /// The limit that refused the request, with the wait that the service demands.
    pub refused: Option<(LimitClass, Duration)>,
}

/// Shared state of the rate limits of accounts. It never fails: without its store it uses the observations of
/// this process.
// A trait, so that clients of Jira and GitHub depend neither on Redis nor on each other.
pub trait LimitGate: Debug + Send + Sync {
    /// Waits until a request may be sent. A write that is slightly early is held back here.
    ///
    /// The error is the time for which the account has to wait. The client must send nothing until then.
    fn admit<'a>(&'a self, request: LimitedRequest<'a>) -> LimitGateFuture<'a, Result<(), Duration>>;

    /// Records the rate limit information of an answer.
    fn observe<'a>(
        &'a self,
        request: LimitedRequest<'a>,
        observation: LimitObservation,
    ) -> LimitGateFuture<'a, ()>;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_quota() -> impl Strategy<Value = PrimaryQuota> {
        (0..4_u64, 0..6_u64).prop_map(|(window, remaining)| PrimaryQuota {
            reset_unix_s: window,
            limit: 5,
            remaining,
        })
    }

    proptest! {
        #[test]
        fn quota_merge_is_independent_of_order(a in any_quota(), b in any_quota(), c in any_quota()) {
            prop_assert_eq!(a.merged(b), b.merged(a));
            prop_assert_eq!(a.merged(b).merged(c), a.merged(b.merged(c)));
            prop_assert_eq!(a.merged(a), a);
        }

        #[test]
        fn bucket_stays_within_limit_per_window(limit in 1..600_u32) {
            let bucket = WriteBucket::of("hour", limit, 3_600_000).unwrap();
            // The bucket is full at the beginning and refilled during the whole window.
            let refilled = 3_600_000 / bucket.interval.as_millis();
            prop_assert!(u128::from(bucket.burst) + refilled <= u128::from(limit));
        }
    }

    #[test]
    fn smallest_limits_are_never_exceeded() {
        for limit in 1..=8 {
            let bucket = WriteBucket::of("minute", limit, 60_000).unwrap();
            // Times at which writes are sent as early as the bucket admits them.
            let (mut ahead_until, mut sent) = (0_u64, Vec::new());
            for now in 0..=180_000_u64 {
                let ahead = Duration::from_millis(ahead_until.saturating_sub(now));
                if bucket.wait(ahead).is_zero() {
                    sent.push(now);
                    ahead_until = ahead_until.max(now) + u64::try_from(bucket.interval.as_millis()).unwrap();
                }
            }
            let limit = usize::try_from(limit).unwrap();
            for (place, first) in sent.iter().enumerate() {
                let next = sent.get(place + limit);
                assert!(
                    next.is_none_or(|next| *next > first + 60_000),
                    "more than {limit} in a minute: {sent:?}"
                );
            }
            assert!(sent.len() > 2, "a limit of {limit} admits later writes: {sent:?}");
        }
    }

    #[test]
    fn github_pace_allows_twenty_then_one_second() {
        let pace = WritePace {
            a_minute: 80,
            an_hour: 500,
        };
        let buckets: Vec<WriteBucket> = pace.buckets().collect();
        assert_eq!(
            (buckets[0].burst, buckets[0].interval),
            (20, Duration::from_secs(1))
        );
        assert_eq!(
            (buckets[1].burst, buckets[1].interval),
            (125, Duration::from_millis(9_600))
        );
        assert_eq!(buckets[0].wait(Duration::from_secs(19)), Duration::ZERO);
        assert_eq!(buckets[0].wait(Duration::from_secs(21)), Duration::from_secs(2));
        assert_eq!(WritePace::default().buckets().count(), 0);
    }
}

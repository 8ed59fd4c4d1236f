//! Limits of services outside: what a client asks before each request, and tells of each answer. What is known of them is
//! kept behind [`LimitGate`], so that clients need not know where.

use std::{fmt::Debug, pin::Pin, time::Duration};

/// The wait for the keeper of the limits.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Which limit refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitClass {
    /// How many requests an account has in a window of time, for each kind of them.
    Primary,
    /// Everything that is too much in a short time; it holds for all requests of the account.
    Secondary,
}

impl LimitClass {
    /// As it stands in metrics and keys.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Secondary => "secondary",
        }
    }
}

/// How many writes an account may make, whoever makes them; 0: any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// In any 60 seconds.
    pub a_minute: u32,
    /// In any 60 minutes.
    pub an_hour: u32,
}

/// Writes that may come at once, and the time between two when there are more: never more than the limit in any window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Its name, one for each length of a window.
    pub name: &'static str,
    /// How many at once.
    pub burst: u32,
    /// Between two of the others.
    pub interval: Duration,
}

impl Bucket {
    fn of(name: &'static str, limit: u32, window_ms: u64) -> Option<Self> {
        let burst = (limit / 4).max(1);
        let others = limit.saturating_sub(burst).max(1);
        (limit > 0).then(|| Self {
            name,
            burst,
            // Whole milliseconds, which every keeper can count.
            interval: Duration::from_millis(window_ms.div_ceil(others.into())),
        })
    }

    /// How long the next write waits while the bucket is ahead of the clock by so much.
    pub fn wait(&self, ahead: Duration) -> Duration {
        ahead.saturating_sub(self.interval * (self.burst - 1))
    }
}

impl Pace {
    /// A quarter of each limit may come at once; the rest is spread over the window. With 80 in a minute that is one each
    /// second after the first 20, which is what GitHub asks of who writes much.
    pub fn buckets(self) -> impl Iterator<Item = Bucket> {
        [
            Bucket::of("minute", self.a_minute, 60 * 1000),
            Bucket::of("hour", self.an_hour, 60 * 60 * 1000),
        ]
        .into_iter()
        .flatten()
    }
}

/// A request that is about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knock<'a> {
    /// Whose limits hold: service, account and instance, e.g. `github:writer:default:installation-7`.
    pub account: &'a str,
    /// The kind of request, each with a primary limit of its own, e.g. `graphql`.
    pub resource: &'a str,
    /// How many writes the account may make; absent for what is no write, or is not counted.
    pub pace: Option<Pace>,
}

/// What is left of a primary limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// When the window ends, in seconds since 1970 by the clock of the service. It names the window.
    pub reset_unix_s: u64,
    /// How many requests a window has.
    pub limit: u64,
    /// How many are left.
    pub remaining: u64,
}

impl Quota {
    /// What both tell together, in whatever order their answers came: the later window, and of one window the least that
    /// is left.
    #[must_use]
    pub const fn merged(self, other: Self) -> Self {
        if other.reset_unix_s > self.reset_unix_s
            || (other.reset_unix_s == self.reset_unix_s && other.remaining < self.remaining)
        {
            other
        } else {
            self
        }
    }

    /// Whether a tenth or less is left.
    pub const fn is_scarce(self) -> bool {
        self.remaining.saturating_mul(10) <= self.limit
    }
}

/// What an answer told of the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// What is left of the primary limit, and how long its window still lasts.
    pub quota: Option<(Quota, Duration)>,
    /// The limit that refused the request, and how long the service asks to wait.
    pub refused: Option<(LimitClass, Duration)>,
}

/// Keeps what is known of the limits of accounts. It never fails: who cannot ask others knows what it saw itself.
pub trait LimitGate: Debug + Send + Sync {
    /// Whether a request may be sent now. A write that is a little too early is held back here.
    ///
    /// The error is how long the account has to wait; nothing is to be sent until then.
    fn admit<'a>(&'a self, knock: Knock<'a>) -> Pending<'a, Result<(), Duration>>;

    /// Takes note of what an answer told.
    fn hear<'a>(&'a self, knock: Knock<'a>, heard: Heard) -> Pending<'a, ()>;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quota() -> impl Strategy<Value = Quota> {
        (0..4_u64, 0..6_u64).prop_map(|(window, remaining)| Quota {
            reset_unix_s: window,
            limit: 5,
            remaining,
        })
    }

    proptest! {
        #[test]
        fn what_several_answers_tell_does_not_depend_on_their_order(a in quota(), b in quota(), c in quota()) {
            prop_assert_eq!(a.merged(b), b.merged(a));
            prop_assert_eq!(a.merged(b).merged(c), a.merged(b.merged(c)));
            prop_assert_eq!(a.merged(a), a);
        }

        #[test]
        fn no_window_has_more_writes_than_its_limit(limit in 4..600_u32) {
            let bucket = Bucket::of("hour", limit, 3_600_000).unwrap();
            // Full at the beginning, and refilled for the whole window.
            let refilled = 3_600_000 / bucket.interval.as_millis();
            prop_assert!(u128::from(bucket.burst) + refilled <= u128::from(limit));
        }
    }

    #[test]
    fn github_s_limit_is_twenty_at_once_and_then_one_a_second() {
        let pace = Pace {
            a_minute: 80,
            an_hour: 500,
        };
        let buckets: Vec<Bucket> = pace.buckets().collect();
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
        assert_eq!(Pace::default().buckets().count(), 0);
    }
}

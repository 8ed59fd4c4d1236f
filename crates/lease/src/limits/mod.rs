//! Limits of outside services that replicas share: a refusal or low quota that one replica receives, the
//! others know before their next request.
//!
//! Redis holds only short-lived state. Times in it are the remaining lifetimes of keys, so clocks need not
//! agree. A wait only becomes longer while it lasts. When Redis does not answer soon, this process's own
//! observations count alone.

mod local_limits;
mod store;

use std::{
    fmt,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use domain::limits::{
    LimitClass, LimitGate, LimitGateFuture, LimitObservation, LimitedRequest, PrimaryQuota, WriteBucket,
};
use opentelemetry::{
    KeyValue, global,
    metrics::{Counter, Gauge},
};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::{Settings, error::Error};
use local_limits::{LimitVerdict, LocalLimits};
pub(crate) use store::PREFIX;
use store::{LimitKeys, LimitStore, SharedWaits};

// A write waits this long for its turn in this process. A longer wait is returned to the caller.
const LONGEST_IN_PLACE: Duration = Duration::from_secs(2);
// Interval of the checks of a server that did not answer. Requests do not wait for it meanwhile.
const REST: Duration = Duration::from_secs(1);
// Limit of every closure: a longer one is a mistake of the service.
const LONGEST_CLOSED: Duration = Duration::from_secs(2 * 3600);

/// Limits of all accounts of a service. Cheap to clone.
#[derive(Clone)]
pub struct SharedLimits(Arc<SharedLimitsState>);

struct SharedLimitsState {
    store: LimitStore,
    book: Mutex<LocalLimits>,
    is_away: AtomicBool,
}

impl fmt::Debug for SharedLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLimits").finish_non_exhaustive()
    }
}

impl SharedLimits {
    /// Creates the limits without connecting. The first use connects, and each later use that finds no
    /// connection.
    ///
    /// # Errors
    /// [`Error::Address`], [`Error::Authorities`].
    pub fn open(settings: &Settings) -> Result<Self, Error> {
        Ok(Self(Arc::new(SharedLimitsState {
            store: LimitStore::open(settings)?,
            book: Mutex::default(),
            is_away: AtomicBool::new(false),
        })))
    }

    /// Makes one round trip within 1 s.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn ping(&self) -> Result<(), Error> {
        self.0.store.ping().await
    }

    fn book(&self) -> MutexGuard<'_, LocalLimits> {
        self.0.book.lock()
    }

    /// True while the server does not answer.
    fn is_away(&self) -> bool {
        self.0.is_away.load(Ordering::Acquire)
    }

    /// Checks the server until it answers again or the limits are dropped.
    fn went_away(&self) {
        // One task at a time checks the server.
        if self.0.is_away.swap(true, Ordering::AcqRel) {
            return;
        }
        // A weak reference, so that the task ends with the last user of the limits.
        let inner = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(REST).await;
                let Some(inner) = inner.upgrade() else { return };
                if inner.store.ping().await.is_ok() {
                    inner.is_away.store(false, Ordering::Release);
                    return;
                }
            }
        });
    }

    async fn verdict(&self, request: &LimitedRequest<'_>, names: &LimitKeys) -> LimitVerdict {
        let now = Instant::now();
        // A closure never becomes shorter, so a known one decides without a round trip to Redis.
        if let Some(closed) = self.book().closed(names, now) {
            return closed;
        }
        let buckets: Vec<WriteBucket> = request.pace.into_iter().flat_map(|pace| pace.buckets()).collect();
        match self.ask(names, &buckets).await {
            Some(known) => self.book().learn(names, &buckets, &known, Instant::now()),
            // Without Redis each replica paces its writes alone. If that is too fast together, the
            // service's refusal ends it.
            None => self.book().admit(names, &buckets, Instant::now()),
        }
    }

    /// Shared state; `None` while the server does not answer.
    async fn ask(&self, names: &LimitKeys, buckets: &[WriteBucket]) -> Option<SharedWaits> {
        if self.is_away() {
            return None;
        }
        let asked = self.0.store.ask(names, buckets);
        match failpoint::around("lease.limits.ask", asked).await {
            Ok(known) => Some(known),
            Err(_) => {
                self.went_away();
                None
            }
        }
    }

    async fn admitted(&self, request: LimitedRequest<'_>) -> Result<(), Duration> {
        let names = LimitKeys::of(&request);
        let verdict = self.verdict(&request, &names).await;
        let refused = match verdict {
            LimitVerdict::Go(wait) if wait.is_zero() => return Ok(()),
            LimitVerdict::Go(wait) => {
                tokio::time::sleep(wait).await;
                // Another request may have been refused meanwhile.
                self.book().closed(&names, Instant::now())
            }
            refused => Some(refused),
        };
        match refused {
            Some(LimitVerdict::Closed(class, wait)) => {
                count_held_back_request(&request, class.as_str());
                Err(wait)
            }
            Some(LimitVerdict::Early(wait)) => {
                count_held_back_request(&request, "pace");
                Err(wait)
            }
            Some(LimitVerdict::Go(_)) | None => Ok(()),
        }
    }

    async fn record_observation(&self, request: LimitedRequest<'_>, observation: LimitObservation) {
        let names = LimitKeys::of(&request);
        if let Some((class, wait)) = observation.refused {
            count_refused_request(&request, class);
            tracing::warn!(
                account = request.account,
                resource = request.resource,
                limit = class.as_str(),
                wait_s = wait.as_secs(),
                "a service outside asks to wait"
            );
            self.close(&names, class, wait).await;
        }
        if let Some((quota, left)) = observation.quota {
            // The next request would be refused, so none is sent before the window ends.
            if quota.remaining == 0 {
                self.close(&names, LimitClass::Primary, left).await;
            }
            self.share(&request, &names, quota, left).await;
        }
    }

    async fn close(&self, names: &LimitKeys, class: LimitClass, wait: Duration) {
        let wait = wait.min(LONGEST_CLOSED);
        let name = names.of_class(class);
        if !self.book().close(name, Instant::now() + wait) {
            return;
        }
        // A refusal is rare and costs each of the other replicas one call, so it is sent even to a server
        // that was slow before. If that fails, each of them receives its own refusal.
        let telling = self.0.store.close(name, wait);
        if let Ok(left) = failpoint::around("lease.limits.close", telling).await {
            self.book().close(name, Instant::now() + left);
        }
    }

    /// Shares the remaining quota, once per tenth of the limit.
    async fn share(
        &self,
        request: &LimitedRequest<'_>,
        names: &LimitKeys,
        quota: PrimaryQuota,
        left: Duration,
    ) {
        let noted = self.book().note(names, quota);
        record_remaining_quota(request, noted.quota.remaining);
        if noted.is_newly_scarce {
            tracing::warn!(
                account = request.account,
                resource = request.resource,
                remaining = noted.quota.remaining,
                limit = noted.quota.limit,
                "most of a rate limit is used"
            );
        }
        if !noted.is_news || self.is_away() {
            return;
        }
        let telling = self.0.store.share(&names.quota, noted.quota, left);
        if let Ok(theirs) = failpoint::around("lease.limits.share", telling).await {
            self.book().note(names, theirs);
        }
    }
}

impl LimitGate for SharedLimits {
    fn admit<'a>(&'a self, request: LimitedRequest<'a>) -> LimitGateFuture<'a, Result<(), Duration>> {
        Box::pin(self.admitted(request))
    }

    fn observe<'a>(
        &'a self,
        request: LimitedRequest<'a>,
        observation: LimitObservation,
    ) -> LimitGateFuture<'a, ()> {
        Box::pin(self.record_observation(request, observation))
    }
}

const METER: &str = "journeyman.limits";

static LIMITED: LazyLock<Counter<u64>> = LazyLock::new(|| {
    let meter = global::meter(METER);
    meter.u64_counter("journeyman.outside.limited").build()
});
static REMAINING: LazyLock<Gauge<u64>> = LazyLock::new(|| {
    let meter = global::meter(METER);
    meter.u64_gauge("journeyman.outside.remaining").build()
});

/// Counts a request that a service refused because of a limit.
fn count_refused_request(request: &LimitedRequest<'_>, class: LimitClass) {
    count_limited_request(request, class.as_str(), "answer");
}

/// Counts a request that was not sent because of a known limit.
fn count_held_back_request(request: &LimitedRequest<'_>, limit: &'static str) {
    count_limited_request(request, limit, "known");
}

fn count_limited_request(request: &LimitedRequest<'_>, limit: &'static str, by: &'static str) {
    let labels = [
        KeyValue::new("journeyman.account", request.account.to_owned()),
        KeyValue::new("journeyman.limit", limit),
        KeyValue::new("journeyman.by", by),
    ];
    LIMITED.add(1, &labels);
}

/// Records the remainder of a primary limit.
fn record_remaining_quota(request: &LimitedRequest<'_>, remaining: u64) {
    let labels = [
        KeyValue::new("journeyman.account", request.account.to_owned()),
        KeyValue::new("journeyman.resource", request.resource.to_owned()),
    ];
    REMAINING.record(remaining, &labels);
}

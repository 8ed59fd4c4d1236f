//! Room in the servers' file store: the order in which messages are refused when it becomes scarce.
//!
//! A full store stops `JetStream` for every client, with three servers even for readers. So objects are
//! refused first, by a limit that the server enforces. Requests, journals and webhooks follow, by this
//! process's estimate of the store. Their streams cannot have a limit at the server: it would drop their
//! oldest records, and the other discard policy would keep a service of the previous release from starting.
//! Acknowledgements, tokens, rows and the ledger use the room between [`Settings::store_mib`] and the
//! servers' limit.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::jetstream;
use domain::cause::format_error_chain;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    error::Error,
    names::{DEAD, OBJECTS},
    settings::Settings,
};

// Percentage of the store for objects; the server enforces it.
const OBJECTS_PERCENT: u64 = 50;
// Percentage of the servers' room for the store. The rest is for messages that are never refused here.
const SERVERS_PERCENT: u64 = 90;
// Percentage of the objects' room that only small objects may use, so that bodies of records find room for
// longer.
pub(crate) const SMALL_OBJECTS_PERCENT: u64 = 10;
/// Largest small object, in bytes.
pub(crate) const SMALL_OBJECT_BYTES: u64 = 1024 * 1024;
// Age at which the known use of the store is read again.
const KNOWN_FOR: Duration = Duration::from_secs(2);
// A process that publishes this part (1/200) of the store reads the store's use again, whatever its age.
const READ_AFTER_PART: u64 = 200;
/// Smallest store with limits, in bytes.
const SMALLEST_STORE_BYTES: u64 = 8 << 20;

/// Rank of a message, derived from its subject. A message of a lower priority is refused while the store
/// still has room for higher ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MessagePriority {
    /// Chunks of objects.
    Bulk,
    /// Triggers and requests to the reporter.
    Request,
    /// Entries of journals.
    Journal,
    /// Verified webhook deliveries and dead letters.
    Delivery,
    /// Messages that finish records: tokens, timers, rows, ledger and control records.
    Vital,
}

impl MessagePriority {
    /// Priority of a message with this subject.
    pub(crate) fn of(subject: &str) -> Self {
        const BY_PREFIX: [(&str, MessagePriority); 6] = [
            ("$O.objects.C.", MessagePriority::Bulk),
            ("journeyman.triggers.", MessagePriority::Request),
            ("journeyman.reports.", MessagePriority::Request),
            ("journeyman.journal.", MessagePriority::Journal),
            // A letter ends the redeliveries of a message, so it must not be refused before deliveries are.
            ("journeyman.dead.", MessagePriority::Delivery),
            ("journeyman.deliveries.", MessagePriority::Delivery),
        ];
        let found = BY_PREFIX.iter().find(|(prefix, _)| subject.starts_with(prefix));
        found.map_or(Self::Vital, |(_, priority)| *priority)
    }

    /// Percentage of the store in use above which such a message is refused; `None`: never refused here.
    const fn limit_percent(self) -> Option<u64> {
        match self {
            Self::Bulk => Some(75),
            Self::Request => Some(84),
            Self::Journal => Some(90),
            Self::Delivery => Some(97),
            Self::Vital => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Bulk => "an object",
            Self::Request => "a request",
            Self::Journal => "a journal entry",
            Self::Delivery => "a delivery",
            Self::Vital => "a record",
        }
    }
}

/// Limits of streams, derived from the size of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreLimits {
    /// Limit of all streams together in bytes; 0: no limit.
    store: u64,
}

impl StoreLimits {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            store: u64::from(settings.store_mib) << 20,
        }
    }

    /// Limit of all streams together, in MiB; 0: no limit.
    pub(crate) const fn store_mib(self) -> u64 {
        self.store >> 20
    }

    /// Limits of half the store, for servers without the room; 0 below the smallest store.
    pub(crate) const fn halved(self) -> Self {
        match self.store / 2 {
            store if store < SMALLEST_STORE_BYTES => Self { store: 0 },
            store => Self { store },
        }
    }

    /// Room that the servers must have, in bytes: the store, and a reserve for messages that are never
    /// refused here.
    pub(crate) fn required(self) -> i64 {
        i64::try_from(self.store / SERVERS_PERCENT * 100).unwrap_or(i64::MAX)
    }

    /// Limit of the objects' stream in bytes; -1: no limit.
    pub(crate) fn objects(self) -> i64 {
        match self.store {
            0 => -1,
            bytes => i64::try_from(bytes / 100 * OBJECTS_PERCENT).unwrap_or(i64::MAX),
        }
    }
}

/// Size of the store in bytes, derived from the limit of the objects' stream; 0: no limit.
///
/// So a service learns it from the servers, not from a setting that could differ from the reporter's.
fn store_limit(objects_max_bytes: i64) -> u64 {
    u64::try_from(objects_max_bytes).map_or(0, |bytes| bytes / OBJECTS_PERCENT * 100)
}

/// Estimate that one process has of the store.
#[derive(Clone, Default)]
pub(crate) struct StoreRoom {
    known: Arc<KnownRoom>,
}

#[derive(Default)]
struct KnownRoom {
    used: AtomicU64,
    limit: AtomicU64,
    /// Bytes that this process published since the store's use was read.
    published: AtomicU64,
    read_at: Mutex<Option<Instant>>,
    is_reading: AtomicBool,
}

impl StoreRoom {
    /// Admits and counts a message, or refuses it for lack of room. A stale estimate is refreshed in the
    /// background, so the caller waits for no answer.
    pub(crate) fn admit(
        &self,
        (context, replicas): (&jetstream::Context, usize),
        subject: &str,
        bytes: u64,
    ) -> Result<(), Error> {
        let known = &self.known;
        if known.is_stale() && !known.is_reading.swap(true, Ordering::AcqRel) {
            let (known, context) = (known.clone(), context.clone());
            tokio::spawn(async move { known.refresh(&context, replicas).await });
        }
        let priority = MessagePriority::of(subject);
        if known.admit(priority, bytes) {
            Ok(())
        } else {
            Err(Error::full(priority.name()))
        }
    }
}

impl KnownRoom {
    fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    fn estimate(&self) -> u64 {
        self.used.load(Ordering::Relaxed) + self.published.load(Ordering::Relaxed)
    }

    fn is_stale(&self) -> bool {
        let read_at = *self.read_at.lock();
        let age = read_at.map(|at| at.elapsed());
        age.is_none_or(|age| age >= KNOWN_FOR)
            || (self.limit() > 0 && self.published.load(Ordering::Relaxed) > self.limit() / READ_AFTER_PART)
    }

    /// Counts a message and returns true if it finds room.
    fn admit(&self, priority: MessagePriority, bytes: u64) -> bool {
        let (limit, percent) = (self.limit(), priority.limit_percent());
        // Without a known limit every message is admitted: the server refuses what it cannot store.
        if let Some(percent) = percent.filter(|_| limit > 0)
            && self.estimate() + bytes > limit / 100 * percent
        {
            return false;
        }
        self.published.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    /// Reads the store's use. Without an answer the previous one stays, because the server itself refuses
    /// what it cannot store.
    async fn refresh(&self, context: &jetstream::Context, replicas: usize) {
        // Read before the request: bytes that are published meanwhile may be missing in the answer and stay
        // counted.
        let published = self.published.load(Ordering::Relaxed);
        match read_store_use(context, replicas).await {
            Ok(StoreUse { used, limit }) => {
                self.used.store(used, Ordering::Relaxed);
                self.limit.store(limit, Ordering::Relaxed);
                self.published.fetch_sub(published, Ordering::Relaxed);
            }
            Err(error) => tracing::debug!(error = %format_error_chain(&error), "the store's use is unknown"),
        }
        // After a failure as well: otherwise every message would send another request to a server that
        // does not answer.
        *self.read_at.lock() = Some(Instant::now());
        self.is_reading.store(false, Ordering::Release);
    }
}

/// Use and limit of the store, in bytes at each server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreUse {
    /// Bytes of all streams.
    pub used: u64,
    /// Limit of all streams: `nats.store_mib`, or less where the servers have less room; 0: no limit.
    pub limit: u64,
}

impl StoreUse {
    /// Used part of the store in percent; 0 without a limit.
    pub const fn percent(self) -> u64 {
        match self.used.saturating_mul(100).checked_div(self.limit) {
            Some(percent) => percent,
            None => 0,
        }
    }
}

/// Reads the use of the store from the servers. Each of the two requests has the timeout of the context.
pub(crate) async fn read_store_use(context: &jetstream::Context, replicas: usize) -> Result<StoreUse, Error> {
    let account = context.query_account().await;
    let account = account.map_err(|error| Error::unavailable("read the store's use", error))?;
    let objects = context.get_stream(OBJECTS).await;
    let objects = objects.map_err(|error| Error::unavailable(format!("read stream {OBJECTS}"), error))?;
    // The account counts each replica.
    Ok(StoreUse {
        used: account.storage / replicas.max(1) as u64,
        limit: store_limit(objects.cached_info().config.max_bytes),
    })
}

/// Use of the store by one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamUse {
    /// Name of the stream.
    pub stream: String,
    /// Size of the stream, in bytes.
    pub used: u64,
    /// Limit of the stream at the server, in bytes; absent without one.
    pub limit: Option<u64>,
}

/// True for the streams whose `max_bytes` follows from settings.
pub(crate) fn has_limit(stream: &str) -> bool {
    stream == OBJECTS || stream == DEAD
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{self, KeyValueBucket};

    #[test]
    fn scarce_room_refuses_bulk_first() {
        let ticket = "jira:ENG-1".parse().unwrap();
        let run = domain::RunId::new(ticket, 7);
        let ticket = run.ticket();
        let by_priority = [
            names::object_chunks("nuid"),
            names::TRIGGERS.record(ticket, "key"),
            names::build_journal_subject(&run),
            names::deliveries_of(&domain::ServiceOrigin::GitHub(None)),
            names::TRIGGERS.token(ticket),
        ];
        let priorities: Vec<MessagePriority> = by_priority
            .iter()
            .map(|subject| MessagePriority::of(subject))
            .collect();
        assert!(priorities.is_sorted_by(|one, next| one < next), "{priorities:?}");
        let limits: Vec<u64> = priorities
            .iter()
            .map(|priority| priority.limit_percent().unwrap_or(100))
            .collect();
        assert!(limits.is_sorted_by(|one, next| one < next), "{limits:?}");
        for vital in [
            names::REPORTS.token(ticket),
            names::timer_set(ticket),
            names::object_meta("name"),
            KeyValueBucket::Tickets.subject(&crate::RecordKey::from(ticket)),
        ] {
            assert_eq!(MessagePriority::of(&vital), MessagePriority::Vital, "{vital}");
        }
        let report = names::REPORTS.record(ticket, "key");
        let dead = names::build_letter_subject(domain::RecordKind::Trigger, Some(ticket));
        assert_eq!(MessagePriority::of(&report), MessagePriority::Request);
        assert_eq!(MessagePriority::of(&dead), MessagePriority::Delivery);
    }

    fn build_limits(store_mib: u32) -> StoreLimits {
        StoreLimits::new(&Settings {
            store_mib,
            ..Settings::default()
        })
    }

    #[test]
    fn store_size_follows_from_limit_of_objects() {
        assert_eq!(build_limits(100).objects(), 50 << 20);
        assert_eq!(store_limit(build_limits(100).objects()), 100 << 20);
        assert_eq!((build_limits(0).objects(), store_limit(-1)), (-1, 0));
    }

    #[test]
    fn halving_ends_without_limit() {
        let sizes = std::iter::successors(Some(build_limits(40)), |limits| Some(limits.halved()));
        let sizes: Vec<u64> = sizes.take(4).map(StoreLimits::store_mib).collect();
        assert_eq!(sizes, [40, 20, 10, 0]);
    }

    #[test]
    fn used_part_is_a_percentage() {
        let part = |used, limit| StoreUse { used, limit }.percent();
        assert_eq!((part(70, 100), part(0, 0), part(5, 0)), (70, 0, 0));
    }
}

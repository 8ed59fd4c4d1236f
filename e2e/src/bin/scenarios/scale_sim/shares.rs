//! Load of a minute: shares of the measured ticket, heartbeats by default settings, and idle services.

use std::time::Duration;

use crate::scale_sim::measurement::{CallAccount, CallKind, MeasuredLoad};

/// Parts of a ticket's path in the simulation: requested, opened, repaired, answered, merged.
const PARTS: f64 = 5.0;
/// Replicas of ingest, planner and reporter in the manifests.
const REPLICAS: f64 = 2.0;
/// Periodic reads of a session's log, per minute.
const LOOKS_A_MINUTE: f64 = 4.0;

/// Calls and messages of one minute.
#[derive(Clone, Debug, Default)]
pub(crate) struct MinuteLoad {
    pub(crate) webhooks: f64,
    pub(crate) reader_unchanged: f64,
    pub(crate) reader_counted: f64,
    pub(crate) reader_graphql: f64,
    pub(crate) writer_reads: f64,
    pub(crate) writer_writes: f64,
    pub(crate) jira_reader: f64,
    pub(crate) jira_writer: f64,
    pub(crate) stored: f64,
    pub(crate) acknowledged: f64,
    pub(crate) asked: f64,
    pub(crate) other_nats: f64,
    pub(crate) redis: f64,
}

/// Contributions to a minute.
pub(crate) struct LoadShares {
    part: MinuteLoad,
    /// Load of idle services.
    idle: MinuteLoad,
    /// Load of a run with a slot.
    active: MinuteLoad,
}

impl LoadShares {
    pub(crate) fn of(measured: &MeasuredLoad) -> Self {
        let a_minute = |wait_ms: u64, times: u32| {
            let every = Duration::from_millis(wait_ms) / times;
            60.0 / every.as_secs_f64()
        };
        let github = |account, kind| count_or_zero(measured.github.get(&(account, kind)).copied()) / PARTS;
        let nats = |kind: &str| count_or_zero(measured.nats.get(kind).copied()) / PARTS;
        let idle = |kind: &str| measured.idle_nats.get(kind).copied().unwrap_or_default() * REPLICAS;
        let redis: f64 = measured.redis.values().map(|count| *count as f64).sum();
        Self {
            part: MinuteLoad {
                reader_counted: github(CallAccount::Reader, CallKind::Read),
                reader_graphql: github(CallAccount::Reader, CallKind::Query),
                writer_reads: github(CallAccount::Writer, CallKind::Read)
                    + github(CallAccount::Writer, CallKind::Query),
                writer_writes: github(CallAccount::Writer, CallKind::Write),
                jira_reader: count_or_zero(measured.jira.get(&CallAccount::Reader).copied()) / PARTS,
                jira_writer: count_or_zero(measured.jira.get(&CallAccount::Writer).copied()) / PARTS,
                stored: nats("stored") + nats("live output"),
                acknowledged: nats("acknowledged, or in progress"),
                asked: nats("asked for the next one"),
                other_nats: nats("read and managed"),
                redis: redis / PARTS,
                ..MinuteLoad::default()
            },
            idle: MinuteLoad {
                stored: idle("stored"),
                acknowledged: idle("acknowledged, or in progress"),
                asked: idle("asked for the next one"),
                other_nats: idle("read and managed"),
                redis: measured.idle_redis.values().sum::<f64>() * REPLICAS,
                ..MinuteLoad::default()
            },
            active: MinuteLoad {
                acknowledged: a_minute(queue::Settings::default().ack_wait_ms, queue::PROGRESS),
                other_nats: LOOKS_A_MINUTE,
                redis: a_minute(lease::Settings::default().ttl_ms, lease::RENEWALS),
                ..MinuteLoad::default()
            },
        }
    }

    pub(crate) fn writes_a_part(&self) -> f64 {
        self.part.writer_writes
    }
}

fn count_or_zero(found: Option<u64>) -> f64 {
    found.unwrap_or_default() as f64
}

impl MinuteLoad {
    pub(crate) fn add_part(&mut self, shares: &LoadShares) {
        self.add(&shares.part, 1.0);
    }

    /// Adds a minute with this number of runs with a slot.
    pub(crate) fn add_minute(&mut self, shares: &LoadShares, active: f64) {
        self.add(&shares.idle, 1.0);
        self.add(&shares.active, active);
    }

    fn add(&mut self, other: &Self, times: f64) {
        for (own, more) in self.fields().into_iter().zip(other.clone().fields()) {
            *own += *more * times;
        }
    }

    fn fields(&mut self) -> [&mut f64; 13] {
        [
            &mut self.webhooks,
            &mut self.reader_unchanged,
            &mut self.reader_counted,
            &mut self.reader_graphql,
            &mut self.writer_reads,
            &mut self.writer_writes,
            &mut self.jira_reader,
            &mut self.jira_writer,
            &mut self.stored,
            &mut self.acknowledged,
            &mut self.asked,
            &mut self.other_nats,
            &mut self.redis,
        ]
    }
}

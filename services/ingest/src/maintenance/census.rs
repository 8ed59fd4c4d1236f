//! Census of tickets and runs by state, exported as gauges for dashboards, alerts and autoscalers.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, Once},
    time::Duration,
};

use bootstrap::rules::RulesStore;
use domain::{RunStatus, TicketRow, Timestamp, cause::format_error_chain};
use opentelemetry::{KeyValue, global};
use parking_lot::Mutex;
use queue::{KeyValueBucket, NatsRole, Queue, TableMirror};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

const EVERY: Duration = Duration::from_secs(10);

/// Latest census; `None` in a process that does not count. Static, because the meters are global per process.
static COUNTED: LazyLock<Mutex<Option<CensusFigures>>> = LazyLock::new(Mutex::default);
static OBSERVED: Once = Once::new();

/// Counter of tickets and runs. It runs in one process of the cluster, because dashboards add up the gauges of all
/// processes.
pub(crate) struct RunCensus {
    queue: Queue,
    rules: Arc<RulesStore>,
    rows: TableMirror<TicketRow>,
}

/// Figures of one census.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CensusFigures {
    /// Live runs by job and state.
    runs: BTreeMap<(&'static str, &'static str), u64>,
    /// Tickets with a queued run.
    waiting: u64,
    /// Waiting time of the run that is queued longest, in seconds.
    oldest_wait_s: u64,
    /// Tickets in quarantine until a user retries them.
    quarantined: u64,
    dead_letters: u64,
    disabled_rules: u64,
    /// Bytes used by all streams at each server, and the limit in bytes.
    store: (u64, u64),
    /// Used bytes by stream.
    streams: BTreeMap<String, u64>,
    /// Limit in bytes of each stream that has a limit.
    stream_limits: BTreeMap<String, u64>,
}

impl RunCensus {
    pub(crate) fn new(queue: Queue, rules: Arc<RulesStore>) -> Self {
        let rows = TableMirror::new(queue.table(KeyValueBucket::Tickets));
        Self { queue, rules, rows }
    }

    /// Counts periodically until shutdown. Afterwards this process exports no figures.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        // A meter keeps its callbacks as long as the process lives, and this process may become the
        // singleton several times.
        OBSERVED.call_once(register_gauges);
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let counting = async {
            loop {
                ticks.tick().await;
                // The gauges keep the previous figures until the next count.
                match self.count(bootstrap::read_wall_clock()).await {
                    Ok(counted) => store_figures(Some(counted)),
                    Err(error) => tracing::debug!(error = %format_error_chain(&error), "not counted"),
                }
            }
        };
        // Drop also runs when another process takes over the singleton and this future is canceled.
        let _forget = CensusReset;
        shutdown.run_until_cancelled(counting).await;
    }

    async fn count(&mut self, now: Timestamp) -> Result<CensusFigures, queue::Error> {
        // The mirror reads only the changes since the last count.
        self.rows.catch_up().await?;
        let mut counted = count_rows(self.rows.values(), now);
        counted.dead_letters = self.queue.dead_letters().count().await?;
        counted.disabled_rules = self.rules.book().problems().len() as u64;
        let store = self.queue.store_use().await?;
        counted.store = (store.used, store.limit);
        for stream in self.queue.stream_uses(NatsRole::Ingest).await? {
            if let Some(limit) = stream.limit {
                counted.stream_limits.insert(stream.stream.clone(), limit);
            }
            counted.streams.insert(stream.stream, stream.used);
        }
        Ok(counted)
    }
}

struct CensusReset;

impl Drop for CensusReset {
    fn drop(&mut self) {
        store_figures(None);
    }
}

fn store_figures(counted: Option<CensusFigures>) {
    // A poisoned lock is usable, because the figures are only ever replaced as a whole.
    *COUNTED.lock() = counted;
}

fn load_figures() -> Option<CensusFigures> {
    COUNTED.lock().clone()
}

fn count_rows<'a>(rows: impl Iterator<Item = &'a TicketRow>, now: Timestamp) -> CensusFigures {
    let mut counted = CensusFigures::default();
    for row in rows {
        counted.quarantined += u64::from(row.quarantined.is_some());
        let mut waits = false;
        for run in &row.runs {
            let Some(state) = name_state(&run.status) else {
                continue;
            };
            *counted.runs.entry((run.job.as_str(), state)).or_default() += 1;
            if run.status == RunStatus::Queued {
                waits = true;
                let waited = now.since(run.started_at).as_secs();
                counted.oldest_wait_s = counted.oldest_wait_s.max(waited);
            }
        }
        counted.waiting += u64::from(waits);
    }
    counted
}

/// Label of a run's state; `None` for a finished run.
fn name_state(status: &RunStatus) -> Option<&'static str> {
    match status {
        RunStatus::Queued => Some("queued"),
        RunStatus::Active => Some("active"),
        RunStatus::Parked { waits_for } => Some(waits_for.as_str()),
        RunStatus::Finished { .. } => None,
    }
}

/// Name, unit and accessor of a gauge.
type GaugeDefinition = (&'static str, &'static str, fn(&CensusFigures) -> u64);

/// Name and accessor of a gauge with one value per stream.
type NumberByStream = (&'static str, fn(CensusFigures) -> BTreeMap<String, u64>);

fn register_gauges() {
    let meter = global::meter("journeyman.ingest");
    meter
        .u64_observable_gauge("journeyman.runs.live")
        .with_unit("{run}")
        .with_callback(|gauge| {
            for ((job, state), count) in load_figures().unwrap_or_default().runs {
                let labels = [
                    KeyValue::new("journeyman.job", job),
                    KeyValue::new("journeyman.state", state),
                ];
                gauge.observe(count, &labels);
            }
        })
        .build();
    let by_stream: [NumberByStream; 2] = [
        ("journeyman.store.stream.used", |counted| counted.streams),
        ("journeyman.store.stream.limit", |counted| counted.stream_limits),
    ];
    for (name, streams) in by_stream {
        let gauge = meter.u64_observable_gauge(name).with_unit("By");
        gauge
            .with_callback(move |gauge| {
                for (stream, bytes) in streams(load_figures().unwrap_or_default()) {
                    gauge.observe(bytes, &[KeyValue::new("journeyman.stream", stream)]);
                }
            })
            .build();
    }
    let numbers: [GaugeDefinition; 7] = [
        ("journeyman.tickets.waiting", "{ticket}", |counted| {
            counted.waiting
        }),
        ("journeyman.tickets.oldest_wait", "s", |counted| {
            counted.oldest_wait_s
        }),
        ("journeyman.tickets.quarantined", "{ticket}", |counted| {
            counted.quarantined
        }),
        ("journeyman.dead_letters", "{letter}", |counted| {
            counted.dead_letters
        }),
        ("journeyman.rules.disabled", "{file}", |counted| {
            counted.disabled_rules
        }),
        ("journeyman.store.used", "By", |counted| counted.store.0),
        ("journeyman.store.limit", "By", |counted| counted.store.1),
    ];
    for (name, unit, number) in numbers {
        let gauge = meter.u64_observable_gauge(name).with_unit(unit);
        gauge
            .with_callback(move |gauge| {
                if let Some(counted) = load_figures() {
                    gauge.observe(number(&counted), &[]);
                }
            })
            .build();
    }
}

#[cfg(test)]
mod tests {
    use domain::{Job, RunId, RunSummary, StopReason, TicketKey, WaitCondition};

    use super::*;

    fn build_ticket_row(statuses: &[RunStatus]) -> TicketRow {
        let ticket = TicketKey::jira("ENG-1").unwrap();
        let runs = statuses.iter().zip(1_u32..);
        let run = |(status, number): (&RunStatus, u32)| RunSummary {
            id: RunId::new(ticket.clone(), number.into()),
            job: Job::Implement,
            status: status.clone(),
            started_at: Timestamp::from_unix_ms(i64::from(number) * 1_000),
            finished_at: None,
            turns: 0,
        };
        TicketRow {
            runs: runs.map(run).collect(),
            ..TicketRow::default()
        }
    }

    #[test]
    fn waiting_ticket_counts_once_per_census() {
        let finished = RunStatus::Finished {
            reason: StopReason::Completed,
        };
        let parked = RunStatus::Parked {
            waits_for: WaitCondition::Decision,
        };
        let mut aside = build_ticket_row(&[finished]);
        aside.quarantined = Some("it fell five times".to_owned());
        let rows = [
            build_ticket_row(&[RunStatus::Active, RunStatus::Queued, RunStatus::Queued]),
            build_ticket_row(&[parked]),
            aside,
        ];
        let counted = count_rows(rows.iter(), Timestamp::from_unix_ms(62_000));
        assert_eq!(
            (counted.waiting, counted.oldest_wait_s, counted.quarantined),
            (1, 60, 1)
        );
        let runs: Vec<_> = counted
            .runs
            .into_iter()
            .map(|((_, state), count)| (state, count))
            .collect();
        assert_eq!(runs, [("active", 1), ("decision", 1), ("queued", 2)]);
    }
}

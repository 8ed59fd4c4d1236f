//! The sweeper: finds tickets whose wake-up or timer was lost, and wakes them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bootstrap::jitter;
use domain::{ReportCursor, Row, RunStatus, TicketKey, Timestamp, cause::chain};
use opentelemetry::metrics::Counter;
use queue::{Bucket, Key, Keyed, KeyedLog, Queue};
use tokio_util::sync::CancellationToken;

/// Wakes what should be awake.
pub(crate) struct Sweeper {
    queue: Queue,
    interval: Duration,
    triggers: Heard,
    reports: Heard,
    swept: Counter<u64>,
}

/// The last record of each ticket in a log, as far as it was read.
#[derive(Default)]
struct Heard {
    last: BTreeMap<TicketKey, u64>,
    read_to: Option<u64>,
}

impl Heard {
    /// Everything once, ticket by ticket, and afterwards what was appended: the bodies of a whole log would be much to
    /// read. A log that was made anew is read anew.
    async fn catch_up<T: Keyed>(&mut self, log: &KeyedLog<T>) -> Result<(), queue::Error> {
        let newest = log.newest().await?.unwrap_or_default();
        match self.read_to.filter(|read_to| *read_to <= newest) {
            Some(read_to) => {
                let (appended, newest) = log.appended_after(read_to).await?;
                self.last.extend(appended);
                self.read_to = Some(newest);
            }
            None => {
                self.last.clear();
                for ticket in log.tickets().await? {
                    if let Some(last) = log.last_sequence(&ticket).await? {
                        self.last.insert(ticket, last);
                    }
                }
                self.read_to = Some(newest);
            }
        }
        Ok(())
    }

    /// Those of the tickets that still have a record; others were purged or have aged out, and are forgotten.
    async fn confirmed<T: Keyed>(
        &mut self,
        tickets: BTreeSet<TicketKey>,
        log: &KeyedLog<T>,
    ) -> Result<Vec<TicketKey>, queue::Error> {
        let mut confirmed = Vec::new();
        for ticket in tickets {
            if log.last_sequence(&ticket).await?.is_some() {
                confirmed.push(ticket);
            } else {
                self.last.remove(&ticket);
            }
        }
        Ok(confirmed)
    }
}

impl Sweeper {
    pub(crate) fn new(queue: Queue, interval: Duration) -> Self {
        let swept = opentelemetry::global::meter("journeyman")
            .u64_counter("journeyman.wakeups.swept")
            .with_description("Tickets that had work and no wake-up token.")
            .build();
        Self {
            queue,
            interval,
            triggers: Heard::default(),
            reports: Heard::default(),
            swept,
        }
    }

    /// Sweeps after every interval, until shutdown. The first sweep is up to a quarter of it early, so that installations that are
    /// started together do not sweep in step.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let early = jitter::own_start_delay("sweeper", self.interval / 4);
        let mut pause = self.interval.saturating_sub(early);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = self.interval;
            let swept = tokio::select! {
                () = shutdown.cancelled() => return,
                swept = Box::pin(self.sweep(bootstrap::now())) => swept,
            };
            match swept {
                Ok(0) => {}
                Ok(tickets) => tracing::warn!(tickets, "tickets had work and no wake-up; they have one now"),
                Err(error) => {
                    tracing::warn!(error = %chain(&error), "sweep not finished; the next one goes on")
                }
            }
        }
    }

    /// One round; gives how many tickets had lost their token. It costs a listing of the rows, one of the cursors, and
    /// what was appended since the last round.
    async fn sweep(&mut self, now: Timestamp) -> Result<u64, queue::Error> {
        let triggers = self.queue.triggers();
        self.triggers.catch_up(&triggers).await?;
        let mut new: BTreeSet<TicketKey> = self.triggers.last.keys().cloned().collect();
        let mut woken = 0;
        for (key, row) in self.queue.table::<Row>(Bucket::Tickets).list().await? {
            let Some(ticket) = key.ticket() else {
                continue;
            };
            new.remove(&ticket);
            let last = self.triggers.last.get(&ticket).copied();
            if needs_waking(&row, last, now) && triggers.rewake(&ticket).await? {
                woken += self.count(&ticket, "triggers");
            }
        }
        // Those that no planner has seen yet, or whose row cannot be read: a planner mends it.
        for ticket in self.triggers.confirmed(new, &triggers).await? {
            if triggers.rewake(&ticket).await? {
                woken += self.count(&ticket, "triggers");
            }
        }
        Ok(woken + self.sweep_reports().await?)
    }

    /// Tickets with reports that nobody has settled.
    async fn sweep_reports(&mut self) -> Result<u64, queue::Error> {
        let reports = self.queue.reports();
        self.reports.catch_up(&reports).await?;
        let mut unsettled = self.reports.last.clone();
        let cursors = self.queue.table::<ReportCursor>(Bucket::Effects);
        for (key, cursor) in cursors.list_named(Key::CURSOR).await? {
            if let Some(ticket) = key.ticket()
                && unsettled
                    .get(&ticket)
                    .is_some_and(|last| *last <= cursor.sequence)
            {
                unsettled.remove(&ticket);
            }
        }
        let mut woken = 0;
        for ticket in self
            .reports
            .confirmed(unsettled.into_keys().collect(), &reports)
            .await?
        {
            if reports.rewake(&ticket).await? {
                woken += self.count(&ticket, "reports");
            }
        }
        Ok(woken)
    }

    fn count(&self, ticket: &TicketKey, log: &'static str) -> u64 {
        tracing::info!(%ticket, log, "ticket had no wake-up");
        self.swept
            .add(1, &[opentelemetry::KeyValue::new("journeyman.log", log)]);
        1
    }
}

/// True when a planner should have the ticket in hand or be about to.
fn needs_waking(row: &Row, last: Option<u64>, now: Timestamp) -> bool {
    let unread = last.is_some_and(|last| last > row.cursor);
    let due = row.due.is_some_and(|due| due <= now);
    let at_work = row.runs.iter().any(|run| matches!(run.status, RunStatus::Active));
    unread || (row.quarantined.is_none() && (due || at_work))
}

#[cfg(test)]
mod tests {
    use domain::{Job, Lane, Pending, RunId, WaitsFor};

    use super::*;

    fn row(status: Option<RunStatus>) -> Row {
        let mut row = Row {
            cursor: 5,
            ..Row::default()
        };
        if let Some(status) = status {
            let run = RunId::new("jira:ENG-1".parse().unwrap(), 5);
            row.open(
                Pending::new(run.clone(), Job::Implement, Lane::Talk),
                Timestamp::default(),
            );
            row.run_mut(&run).unwrap().status = status;
        }
        row
    }

    #[test]
    fn unread_triggers_due_timers_and_runs_at_work_need_a_planner() {
        let now = Timestamp::from_unix_ms(1_000);
        let parked = || RunStatus::Parked {
            waits_for: WaitsFor::Report,
        };
        assert!(!needs_waking(&row(None), Some(5), now));
        assert!(needs_waking(&row(None), Some(6), now));
        assert!(needs_waking(&row(Some(RunStatus::Active)), Some(5), now));
        assert!(!needs_waking(&row(Some(parked())), Some(5), now));
        for (due, expected) in [(999, true), (1_000, true), (1_001, false)] {
            let row = Row {
                due: Some(Timestamp::from_unix_ms(due)),
                ..row(Some(parked()))
            };
            assert_eq!(needs_waking(&row, Some(5), now), expected);
        }
    }

    #[test]
    fn a_quarantined_ticket_is_woken_by_new_triggers_only() {
        let row = Row {
            quarantined: Some("stuck".to_owned()),
            ..row(Some(RunStatus::Active))
        };
        assert!(!needs_waking(&row, Some(5), Timestamp::default()));
        assert!(needs_waking(&row, Some(6), Timestamp::default()));
    }
}

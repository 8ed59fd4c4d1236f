//! Sweeper: finds tickets with a lost wake-up or timer, and wakes them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bootstrap::jitter;
use domain::{
    OutboundCursor, RunStatus, TicketKey, TicketRow, Timestamp, WaitCondition, cause::format_error_chain,
};
use opentelemetry::metrics::Counter;
use queue::{FoundValue, KeyValueBucket, KeyedLog, KeyedRecord, Queue, RecordKey};
use tokio_util::sync::CancellationToken;

// Pause between the search for open work and the wake-up. A record that was just appended has its token by then, and work in
// progress is mostly settled.
const SECOND_LOOK: Duration = Duration::from_secs(1);
// Longest time to a retry that counts as soon. A retry after a failure comes within minutes; one in the next period of a
// budget may come a month later.
const SOON: Duration = Duration::from_secs(3600);

/// Periodic search for tickets with open work and without a token.
pub(crate) struct WakeupSweeper {
    queue: Queue,
    interval: Duration,
    triggers: LogTail,
    reports: LogTail,
    swept: Counter<u64>,
}

/// Sequence of each ticket's last record in a log, as far as the log was read.
#[derive(Default)]
struct LogTail {
    last: BTreeMap<TicketKey, u64>,
    read_to: Option<u64>,
}

impl LogTail {
    /// Reads the last sequence of every ticket once, and afterwards only the appended records, because the bodies of a whole log
    /// are expensive to read. A log that was recreated is read from the start.
    async fn catch_up<T: KeyedRecord>(&mut self, log: &KeyedLog<T>) -> Result<(), queue::Error> {
        // The end of the log is read before the tickets. A record that arrives during the listing is
        // then read again by the next sweep instead of being missed.
        let newest = log.newest().await?.unwrap_or_default();
        // A sequence below the remembered one means that the stream was deleted and created again.
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

    /// Tickets that still have a record. Others were purged or have aged out, and are dropped from memory.
    async fn confirmed<T: KeyedRecord>(
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

impl WakeupSweeper {
    pub(crate) fn new(queue: Queue, interval: Duration) -> Self {
        let swept = opentelemetry::global::meter("journeyman")
            .u64_counter("journeyman.wakeups.swept")
            .with_description("Tickets that had work and no wake-up token.")
            .build();
        Self {
            queue,
            interval,
            triggers: LogTail::default(),
            reports: LogTail::default(),
            swept,
        }
    }

    /// Sweeps after every interval, until shutdown. The first sweep is up to a quarter of the interval early, so that
    /// installations that start together do not sweep in step.
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
                swept = Box::pin(self.sweep(bootstrap::read_wall_clock())) => swept,
            };
            match swept {
                Ok(0) => {}
                Ok(tickets) => tracing::warn!(tickets, "tickets had work and no wake-up; they have one now"),
                Err(error) => {
                    tracing::warn!(error = %format_error_chain(&error), "sweep not finished; the next one continues")
                }
            }
        }
    }

    /// Runs one sweep and returns the number of tickets with a lost token.
    ///
    /// It costs a listing of the rows, one of the cursors, the records appended since the last sweep, and a few requests for each
    /// ticket with open work.
    async fn sweep(&mut self, now: Timestamp) -> Result<u64, queue::Error> {
        let suspects = self.find_suspects(now).await?;
        if suspects.is_empty() {
            return Ok(0);
        }
        tokio::time::sleep(SECOND_LOOK).await;
        let mut woken = 0;
        for suspect in &suspects {
            woken += u64::from(self.wake(suspect, now).await?);
        }
        Ok(woken)
    }

    /// True when a ticket has work that continues without an event from outside.
    pub(crate) async fn has_open_work(&mut self, now: Timestamp) -> Result<bool, queue::Error> {
        let rows = self.read_rows().await?;
        Ok(rows.iter().any(|(_, row)| can_continue_alone(row, now))
            || !self.select_suspects(&rows, now).await?.is_empty())
    }

    /// Reads the rows of all tickets, and before them the new triggers.
    async fn read_rows(&mut self) -> Result<Vec<(RecordKey, TicketRow)>, queue::Error> {
        // The log is read before the rows, so that a planner that advances in between does not appear
        // behind.
        self.triggers.catch_up(&self.queue.triggers()).await?;
        let rows = self.queue.table::<TicketRow>(KeyValueBucket::Tickets);
        rows.list().await
    }

    /// Tickets with open work. Most have a token, or are about to get one.
    async fn find_suspects(&mut self, now: Timestamp) -> Result<Vec<SweptTicket>, queue::Error> {
        let rows = self.read_rows().await?;
        self.select_suspects(&rows, now).await
    }

    /// Tickets with open work according to their rows and the logs.
    async fn select_suspects(
        &mut self,
        rows: &[(RecordKey, TicketRow)],
        now: Timestamp,
    ) -> Result<Vec<SweptTicket>, queue::Error> {
        let mut new: BTreeSet<TicketKey> = self.triggers.last.keys().cloned().collect();
        let mut suspects = Vec::new();
        for (key, row) in rows {
            let Some(ticket) = key.ticket() else {
                continue;
            };
            new.remove(&ticket);
            let last = self.triggers.last.get(&ticket).copied();
            if needs_waking(row, last, now) {
                suspects.push(SweptTicket::of_triggers(ticket, last));
            }
        }
        // Tickets that no planner has taken yet, or whose row is unreadable. A planner rebuilds such a row.
        let triggers = self.queue.triggers();
        for ticket in self.triggers.confirmed(new, &triggers).await? {
            let last = self.triggers.last.get(&ticket).copied();
            suspects.push(SweptTicket::of_triggers(ticket, last));
        }
        suspects.extend(self.find_unsettled().await?);
        Ok(suspects)
    }

    /// Tickets with unsettled reports.
    async fn find_unsettled(&mut self) -> Result<Vec<SweptTicket>, queue::Error> {
        let reports = self.queue.reports();
        // The log is read before the cursors, so that a report that the reporter settles in between does
        // not count as unsettled.
        self.reports.catch_up(&reports).await?;
        let mut unsettled = self.reports.last.clone();
        let cursors = self.queue.table::<OutboundCursor>(KeyValueBucket::Effects);
        for (key, cursor) in cursors.list_named(RecordKey::CURSOR).await? {
            if let Some(ticket) = key.ticket()
                && unsettled
                    .get(&ticket)
                    .is_some_and(|last| *last <= cursor.sequence)
            {
                unsettled.remove(&ticket);
            }
        }
        let tickets = unsettled.keys().cloned().collect();
        let confirmed = self.reports.confirmed(tickets, &reports).await?;
        let suspects = confirmed.into_iter().filter_map(|ticket| {
            let last = *unsettled.get(&ticket)?;
            Some(SweptTicket::of_reports(ticket, last))
        });
        Ok(suspects.collect())
    }

    /// Wakes a ticket that has open work and no token. Returns true when the token was lost.
    async fn wake(&self, suspect: &SweptTicket, now: Timestamp) -> Result<bool, queue::Error> {
        if !self.is_open(suspect, now).await? {
            return Ok(false);
        }
        // The stream holds one token per ticket and refuses a second one, so an accepted token shows
        // that none was outstanding.
        let woken = match suspect.log {
            SweptLog::Triggers { .. } => self.queue.triggers().rewake(&suspect.ticket).await?,
            SweptLog::Reports { .. } => self.queue.reports().rewake(&suspect.ticket).await?,
        };
        // A planner or reporter writes its progress before it acks the token. The work may have ended between both requests, so
        // only open work after the wake-up proves a loss.
        let is_lost = woken && self.is_open(suspect, now).await?;
        if is_lost {
            self.count(suspect);
        }
        Ok(is_lost)
    }

    /// True when the work of the first search is still open.
    async fn is_open(&self, suspect: &SweptTicket, now: Timestamp) -> Result<bool, queue::Error> {
        let ticket = &suspect.ticket;
        match suspect.log {
            SweptLog::Triggers { last } => {
                let rows = self.queue.table::<TicketRow>(KeyValueBucket::Tickets);
                Ok(match rows.find(ticket).await? {
                    Some(FoundValue::Value(row, _)) => needs_waking(&row, last, now),
                    // A planner rebuilds an unreadable row.
                    Some(FoundValue::Unreadable(_)) => true,
                    // Without a row, no planner has read the log, so every record in it is unread.
                    None => last.is_some(),
                })
            }
            SweptLog::Reports { last } => {
                let cursors = self.queue.table::<OutboundCursor>(KeyValueBucket::Effects);
                Ok(match cursors.find(RecordKey::cursor(ticket)).await? {
                    Some(FoundValue::Value(cursor, _)) => cursor.sequence < last,
                    Some(FoundValue::Unreadable(_)) | None => true,
                })
            }
        }
    }

    fn count(&self, suspect: &SweptTicket) {
        let log = suspect.log.name();
        tracing::info!(ticket = %suspect.ticket, log, "ticket had no wake-up");
        self.swept
            .add(1, &[opentelemetry::KeyValue::new("journeyman.log", log)]);
    }
}

/// Ticket with open work at the first search.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SweptTicket {
    ticket: TicketKey,
    log: SweptLog,
}

/// Log whose token the ticket should have, and the last known record there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SweptLog {
    Triggers { last: Option<u64> },
    Reports { last: u64 },
}

impl SweptLog {
    const fn name(self) -> &'static str {
        match self {
            Self::Triggers { .. } => "triggers",
            Self::Reports { .. } => "reports",
        }
    }
}

impl SweptTicket {
    const fn of_triggers(ticket: TicketKey, last: Option<u64>) -> Self {
        let log = SweptLog::Triggers { last };
        Self { ticket, log }
    }

    const fn of_reports(ticket: TicketKey, last: u64) -> Self {
        let log = SweptLog::Reports { last };
        Self { ticket, log }
    }
}

/// True when a planner should be working on the ticket or about to.
fn needs_waking(row: &TicketRow, last: Option<u64>, now: Timestamp) -> bool {
    let unread = last.is_some_and(|last| last > row.cursor);
    let due = row.due.is_some_and(|due| due <= now);
    let at_work = row.runs.iter().any(|run| matches!(run.status, RunStatus::Active));
    // A quarantined ticket waits for a user: due timers and unfinished runs must not wake it, a new trigger must.
    unread || (row.quarantined.is_none() && (due || at_work))
}

/// True when a run of the ticket continues without an event from outside: now, soon, or when a slot is free. A run that
/// waits for a report is not counted, because the unsettled report is.
fn can_continue_alone(row: &TicketRow, now: Timestamp) -> bool {
    let mut runs = row.runs.iter().map(|run| &run.status);
    let is_late = row.due.is_some_and(|due| due > now.plus(SOON));
    let waits_long = |waits_for: WaitCondition| {
        waits_for.is_for_person() || (waits_for == WaitCondition::Retry && is_late)
    };
    let is_held = runs
        .clone()
        .any(|status| matches!(status, RunStatus::Parked { waits_for } if waits_long(*waits_for)));
    row.quarantined.is_none()
        && runs.any(|status| match status {
            RunStatus::Active => true,
            // An earlier run of the lane that waits long holds it back.
            RunStatus::Queued => !is_held,
            RunStatus::Parked { waits_for } => match waits_for {
                WaitCondition::Retry => !is_late,
                WaitCondition::Slot => true,
                WaitCondition::Report | WaitCondition::Decision | WaitCondition::Answer => false,
            },
            RunStatus::Finished { .. } => false,
        })
}

#[cfg(test)]
mod tests {
    use domain::{Job, Lane, PendingRun, RunId, StopReason};

    use super::*;

    fn build_ticket_row(status: Option<RunStatus>) -> TicketRow {
        let mut row = TicketRow {
            cursor: 5,
            ..TicketRow::default()
        };
        if let Some(status) = status {
            let run = RunId::new("jira:ENG-1".parse().unwrap(), 5);
            row.open(
                PendingRun::new(run.clone(), Job::Implement, Lane::Talk),
                Timestamp::default(),
            );
            row.run_mut(&run).unwrap().status = status;
        }
        row
    }

    #[test]
    fn work_without_outside_event_continues_alone() {
        let now = Timestamp::default();
        let parked = |waits_for| RunStatus::Parked { waits_for };
        for status in [
            RunStatus::Queued,
            RunStatus::Active,
            parked(WaitCondition::Retry),
            parked(WaitCondition::Slot),
        ] {
            assert!(
                can_continue_alone(&build_ticket_row(Some(status.clone())), now),
                "{status:?}"
            );
        }
        for status in [
            parked(WaitCondition::Report),
            parked(WaitCondition::Decision),
            parked(WaitCondition::Answer),
            RunStatus::Finished {
                reason: StopReason::Completed,
            },
        ] {
            assert!(
                !can_continue_alone(&build_ticket_row(Some(status.clone())), now),
                "{status:?}"
            );
        }
        assert!(!can_continue_alone(&build_ticket_row(None), now));
        let mut waiting = build_ticket_row(Some(parked(WaitCondition::Retry)));
        waiting.due = Some(now.plus(SOON));
        assert!(can_continue_alone(&waiting, now));
        waiting.due = Some(now.plus(SOON * 2));
        assert!(!can_continue_alone(&waiting, now), "a budget's next period");
        let mut held = build_ticket_row(Some(parked(WaitCondition::Answer)));
        let next = RunId::new("jira:ENG-1".parse().unwrap(), 6);
        held.open(
            PendingRun::new(next, Job::Implement, Lane::Talk),
            Timestamp::default(),
        );
        assert!(
            !can_continue_alone(&held, now),
            "the next run waits for the person too"
        );
        let mut quarantined = build_ticket_row(Some(RunStatus::Active));
        quarantined.quarantined = Some("three takeovers".to_owned());
        assert!(!can_continue_alone(&quarantined, now));
    }

    #[test]
    fn open_work_needs_waking() {
        let now = Timestamp::from_unix_ms(1_000);
        let parked = || RunStatus::Parked {
            waits_for: WaitCondition::Report,
        };
        assert!(!needs_waking(&build_ticket_row(None), Some(5), now));
        assert!(needs_waking(&build_ticket_row(None), Some(6), now));
        assert!(needs_waking(
            &build_ticket_row(Some(RunStatus::Active)),
            Some(5),
            now
        ));
        assert!(!needs_waking(&build_ticket_row(Some(parked())), Some(5), now));
        for (due, expected) in [(999, true), (1_000, true), (1_001, false)] {
            let row = TicketRow {
                due: Some(Timestamp::from_unix_ms(due)),
                ..build_ticket_row(Some(parked()))
            };
            assert_eq!(needs_waking(&row, Some(5), now), expected);
        }
    }

    /// Sweeper with a separate queue, and a report without a token.
    async fn with_report() -> (testkit::NatsServer, WakeupSweeper, u64) {
        let nats = testkit::NatsServer::start().await.unwrap();
        let settings = queue::Settings {
            url: nats.url(),
            ..queue::Settings::default()
        };
        let queue = Queue::connect(&settings, "test").await.unwrap();
        queue.ensure_topology().await.unwrap();
        let report = domain::OutboundRequest {
            id: domain::OutboundId::notice(&build_ticket_key(), 1),
            ticket: build_ticket_key(),
            run: None,
            fence: domain::RunFence::default(),
            at: Timestamp::default(),
            progress: None,
            request: domain::OutboundAction::WorkStarted(domain::report::WorkStarted {
                job: Job::Implement,
                repository: "acme/shop".parse().unwrap(),
                begun: domain::report::WorkOrigin::default(),
            }),
        };
        queue.reports().append(&report).await.unwrap();
        let last = queue
            .reports()
            .last_sequence(&build_ticket_key())
            .await
            .unwrap()
            .unwrap();
        (nats, WakeupSweeper::new(queue, Duration::from_secs(60)), last)
    }

    fn build_ticket_key() -> TicketKey {
        TicketKey::jira("ENG-1").unwrap()
    }

    #[tokio::test]
    async fn report_without_token_is_woken_once() {
        let (_nats, mut sweeper, last) = with_report().await;
        let suspects = sweeper.find_suspects(Timestamp::default()).await.unwrap();
        assert_eq!(suspects, [SweptTicket::of_reports(build_ticket_key(), last)]);
        for expected in [true, false] {
            let woken = sweeper.wake(&suspects[0], Timestamp::default()).await;
            assert_eq!(woken.unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn report_settled_between_sweeps_stays_asleep() {
        let (_nats, mut sweeper, last) = with_report().await;
        let suspects = sweeper.find_suspects(Timestamp::default()).await.unwrap();
        let cursor = OutboundCursor {
            sequence: last,
            ..OutboundCursor::default()
        };
        let cursors = sweeper.queue.table(KeyValueBucket::Effects);
        cursors
            .put(RecordKey::cursor(&build_ticket_key()), &cursor, None)
            .await
            .unwrap();
        let woken = sweeper.wake(&suspects[0], Timestamp::default()).await;
        assert!(!woken.unwrap());
        assert!(
            sweeper.queue.reports().rewake(&build_ticket_key()).await.unwrap(),
            "the sweeper left a token"
        );
    }

    #[tokio::test]
    async fn trigger_folded_between_sweeps_stays_asleep() {
        let (_nats, sweeper, _) = with_report().await;
        let suspect = SweptTicket::of_triggers(build_ticket_key(), Some(6));
        let rows = sweeper.queue.table(KeyValueBucket::Tickets);
        let folded = TicketRow {
            cursor: 6,
            ..TicketRow::default()
        };
        rows.put(&build_ticket_key(), &folded, None).await.unwrap();
        assert!(!sweeper.wake(&suspect, Timestamp::default()).await.unwrap());
        let next = SweptTicket::of_triggers(build_ticket_key(), Some(7));
        assert!(sweeper.wake(&next, Timestamp::default()).await.unwrap());
    }

    #[test]
    fn quarantined_ticket_wakes_by_new_trigger() {
        let row = TicketRow {
            quarantined: Some("stuck".to_owned()),
            ..build_ticket_row(Some(RunStatus::Active))
        };
        assert!(!needs_waking(&row, Some(5), Timestamp::default()));
        assert!(needs_waking(&row, Some(6), Timestamp::default()));
    }
}

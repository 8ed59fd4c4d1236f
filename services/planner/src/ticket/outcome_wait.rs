//! Wait of a session for the outcome of a report that it appended.

use std::time::Duration;

use domain::{RunId, RunStatus, TicketRow, WaitCondition};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::ticket_slots::TicketSlots;

// A new session makes about a dozen requests to NATS and Redis before the run continues. This one has the journal in
// memory, and only renews its lease and its token. Most reports are a few calls of GitHub or Jira, which end within this
// time. If one takes longer, a new session adds little to it.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Returns the time until which a session waits for outcomes; `None` if no run waits for a report that this session
/// appended.
pub(super) fn find_wait_limit(
    row: &TicketRow,
    reported_at: impl Fn(&RunId) -> Option<Instant>,
) -> Option<Instant> {
    let limits = row.pending.iter().filter_map(|pending| {
        let waits_for = WaitCondition::Report;
        let is_awaited = row.run(&pending.run)?.status == RunStatus::Parked { waits_for };
        let appended_at = reported_at(&pending.run)?;
        is_awaited.then_some(appended_at + LONGEST_WAIT)
    });
    limits.max()
}

/// Returns when the wait must end: at its limit, at shutdown, or as soon as another ticket needs the session's slot.
pub(super) async fn reach_wait_end(limit: Instant, slots: &TicketSlots, shutdown: &CancellationToken) {
    tokio::select! {
        () = sleep_until(limit) => {}
        () = slots.wait_for_request() => {}
        () = shutdown.cancelled() => {}
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use domain::{Job, PendingRun, Timestamp};
    use futures::poll;

    use super::*;
    use crate::run::tests::build_ticket_key;

    fn build_row(statuses: &[RunStatus]) -> TicketRow {
        let mut row = TicketRow::default();
        for (sequence, status) in (1..).zip(statuses) {
            let run = RunId::new(build_ticket_key(), sequence);
            let lane = Job::Implement.lane(&"acme/shop".parse().unwrap());
            row.open(
                PendingRun::new(run.clone(), Job::Implement, lane),
                Timestamp::default(),
            );
            row.run_mut(&run).unwrap().status = status.clone();
        }
        row
    }

    const fn build_parked(waits_for: WaitCondition) -> RunStatus {
        RunStatus::Parked { waits_for }
    }

    #[test]
    fn last_report_of_waiting_runs_sets_limit() {
        let start = Instant::now();
        let row = build_row(&[
            build_parked(WaitCondition::Report),
            build_parked(WaitCondition::Report),
            build_parked(WaitCondition::Decision),
        ]);
        let appended_at = |run: &RunId| Some(start + Duration::from_secs(run.sequence()));
        assert_eq!(
            find_wait_limit(&row, appended_at),
            Some(start + Duration::from_secs(2) + LONGEST_WAIT)
        );
        assert_eq!(
            find_wait_limit(&row, |_| None),
            None,
            "an earlier session appended them"
        );
    }

    #[test]
    fn other_waits_need_no_session() {
        let start = Instant::now();
        for status in [
            RunStatus::Active,
            RunStatus::Queued,
            build_parked(WaitCondition::Decision),
            build_parked(WaitCondition::Answer),
            build_parked(WaitCondition::Retry),
            build_parked(WaitCondition::Slot),
        ] {
            let limit = find_wait_limit(&build_row(std::slice::from_ref(&status)), |_| Some(start));
            assert_eq!(limit, None, "{status:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn wait_without_outcome_ends_at_limit() {
        let (slots, shutdown) = (TicketSlots::new(1), CancellationToken::new());
        let limit = Instant::now() + LONGEST_WAIT;
        let mut wait = pin!(reach_wait_end(limit, &slots, &shutdown));
        assert!(poll!(&mut wait).is_pending());
        wait.await;
        assert!(Instant::now() >= limit);
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_ends_wait_at_once() {
        let (slots, shutdown) = (TicketSlots::new(1), CancellationToken::new());
        let limit = Instant::now() + LONGEST_WAIT;
        let mut wait = pin!(reach_wait_end(limit, &slots, &shutdown));
        assert!(poll!(&mut wait).is_pending());
        shutdown.cancel();
        assert!(poll!(&mut wait).is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn ticket_without_slot_ends_wait_at_once() {
        let (slots, shutdown) = (TicketSlots::new(1), CancellationToken::new());
        let _slot = slots.take().await.unwrap();
        let limit = Instant::now() + LONGEST_WAIT;
        let mut wait = pin!(reach_wait_end(limit, &slots, &shutdown));
        assert!(poll!(&mut wait).is_pending());
        let mut taking = pin!(slots.take());
        assert!(poll!(&mut taking).is_pending());
        assert!(poll!(&mut wait).is_ready());
    }
}

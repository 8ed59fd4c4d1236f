//! Polls of the issues that runs and open pull requests work for. A transferred or deleted issue leaves the listings of
//! its repository, so a lost webhook about it shows in a read of the issue alone.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    PullRequestRef, TicketDeparture, TicketKey, TicketRow, TriggerChannel, cause::format_error_chain,
};
use github::ETag;
use queue::{KeyValueBucket, TableRevision};

use crate::{
    facts::tracker_reader::ReadError,
    poll::{pull_request_events::PullRequestPlace, round::count_new_triggers},
    router::{
        EventRouter,
        outcome::{EventFailure, EventOutcome},
    },
};

// Issues that one round reads. The next round continues with the next ones.
const AT_ONCE: usize = 20;

/// Issues that are tickets with work.
#[derive(Default)]
pub(crate) struct DepartureSchedule {
    watched: BTreeMap<TicketKey, WatchedIssue>,
    /// Revision up to which the rows of tickets are read.
    read_to: TableRevision,
    /// Last issue of the previous round.
    last: Option<TicketKey>,
}

/// Issue that a run or a pull request works for.
#[derive(Debug)]
struct WatchedIssue {
    has_run: bool,
    pull_requests: Vec<PullRequestPlace>,
    /// True when the previous round found neither a run nor an open pull request.
    is_idle: bool,
    etag: Option<ETag>,
    /// True when the last read did not find the issue.
    is_missing: bool,
}

impl DepartureSchedule {
    /// Runs one round with the open pull requests of ours, if they are known. Returns the number of departures whose webhook
    /// was missed. A failed issue does not block the others; a rate limit ends the round.
    pub(crate) async fn poll(
        &mut self,
        router: &EventRouter,
        open: Option<&BTreeSet<&PullRequestPlace>>,
    ) -> u64 {
        if let Err(error) = self.read_rows(router).await {
            tracing::warn!(error = %format_error_chain(&error), "the rows of tickets could not be read");
        }
        let mut recovered = 0;
        for ticket in self.list_due(open) {
            match Box::pin(self.check_issue(router, &ticket)).await {
                Ok(outcome) => recovered += count_new_triggers(outcome.as_slice()),
                Err(failure) => {
                    tracing::warn!(%ticket, error = %format_error_chain(&failure), "the issue of the ticket is not read");
                    if failure.is_limit() {
                        break;
                    }
                }
            }
        }
        recovered
    }

    /// Reads the rows that changed since the last round.
    async fn read_rows(&mut self, router: &EventRouter) -> Result<(), queue::Error> {
        let rows = router.queue.table::<TicketRow>(KeyValueBucket::Tickets);
        let (changed, read_to) = rows.changes_after(self.read_to).await?;
        for row in &changed {
            self.note_row(row);
        }
        self.read_to = read_to;
        Ok(())
    }

    fn note_row(&mut self, row: &TicketRow) {
        let Some(ticket) = row.runs.last().map(|run| run.id.ticket()) else {
            return;
        };
        let has_run = !row.pending.is_empty();
        let has_work = has_run || !row.pull_requests.is_empty();
        if !matches!(ticket, TicketKey::GitHub { .. }) || row.left.is_some() || !has_work {
            self.watched.remove(ticket);
            return;
        }
        let place_of = |opened: &PullRequestRef| (opened.repository.clone(), opened.number);
        let pull_requests = row.pull_requests.iter().map(place_of).collect();
        let known = self.watched.remove(ticket);
        let is_missing = known.as_ref().is_some_and(|known| known.is_missing);
        let watched = WatchedIssue {
            has_run,
            pull_requests,
            is_idle: false,
            etag: known.and_then(|known| known.etag),
            is_missing,
        };
        self.watched.insert(ticket.clone(), watched);
    }

    /// Issues to read in this round, beginning after the last one of the previous round.
    fn list_due(&mut self, open: Option<&BTreeSet<&PullRequestPlace>>) -> Vec<TicketKey> {
        let has_work = |watched: &WatchedIssue| {
            let is_open = |place: &PullRequestPlace| open.is_some_and(|open| open.contains(place));
            watched.has_run || watched.pull_requests.iter().any(is_open)
        };
        // As long as the open pull requests are unknown, no issue is forgotten.
        if open.is_some() {
            self.watched.retain(|_, watched| {
                let has_work = has_work(watched);
                // The list of open pull requests is of the previous round, so a new one may be missing once.
                let is_kept = has_work || !watched.is_idle;
                watched.is_idle = !has_work;
                is_kept
            });
        }
        let working = || self.watched.iter().filter(|(_, watched)| has_work(watched));
        let is_later = |ticket: &TicketKey| self.last.as_ref().is_none_or(|last| ticket > last);
        let later = working().filter(|(ticket, _)| is_later(ticket));
        let earlier = working().filter(|(ticket, _)| !is_later(ticket));
        let due = later.chain(earlier).map(|(ticket, _)| ticket.clone());
        let due: Vec<TicketKey> = due.take(AT_ONCE).collect();
        self.last = due.last().cloned();
        due
    }

    /// Reads one issue, and ends the work on it when it left its place.
    async fn check_issue(
        &mut self,
        router: &EventRouter,
        ticket: &TicketKey,
    ) -> Result<Option<EventOutcome>, EventFailure> {
        let (TicketKey::GitHub { repository, number }, Some(watched)) =
            (ticket, self.watched.get_mut(ticket))
        else {
            return Ok(None);
        };
        let read = router
            .outside
            .issue_presence(repository, *number, watched.etag.as_ref())
            .await;
        let departure = match read {
            Ok(etag) => {
                (watched.etag, watched.is_missing) = (etag, false);
                return Ok(None);
            }
            Err(ReadError::Transferred(moved)) => TicketDeparture::Transferred { to: Some(moved.to) },
            Err(ReadError::Deleted(_)) => TicketDeparture::Deleted,
            Err(ReadError::NotFound(_)) => {
                // GitHub answers 404 when the account does not see the new place, and also when it lost access to the
                // repository of the ticket. The listing fails in the second case alone.
                router.outside.changed_issues(repository, None, None).await?;
                // The end of the work is final, so a passing failure of GitHub must not cause it.
                if !std::mem::replace(&mut watched.is_missing, true) {
                    return Ok(None);
                }
                TicketDeparture::Transferred { to: None }
            }
            Err(error) => return Err(error.into()),
        };
        let outcome = router
            .end_departed(ticket.clone(), departure, TriggerChannel::Poll)
            .await?;
        self.watched.remove(ticket);
        Ok(Some(outcome))
    }
}

#[cfg(test)]
mod tests {
    use domain::{Job, Lane, PendingRun, RunId, RunStatus, RunSummary, StopReason, Timestamp};

    use super::*;

    fn build_ticket(number: u64) -> TicketKey {
        TicketKey::GitHub {
            repository: "acme/shop".parse().unwrap(),
            number,
        }
    }

    fn build_place() -> PullRequestPlace {
        ("acme/shop".parse().unwrap(), 90)
    }

    fn build_row(ticket: TicketKey, has_run: bool, has_pull_request: bool) -> TicketRow {
        let run = RunId::new(ticket, 5);
        let status = if has_run {
            RunStatus::Active
        } else {
            RunStatus::Finished {
                reason: StopReason::Completed,
            }
        };
        let pending = PendingRun::new(run.clone(), Job::Answer, Lane::Talk);
        let (repository, number) = build_place();
        let opened = PullRequestRef {
            repository,
            number,
            url: "u".to_owned(),
            branch: "b".to_owned(),
        };
        TicketRow {
            pending: has_run.then_some(pending).into_iter().collect(),
            runs: vec![RunSummary {
                id: run,
                job: Job::Answer,
                status,
                started_at: Timestamp::default(),
                finished_at: None,
                turns: 0,
            }],
            pull_requests: has_pull_request.then_some(opened).into_iter().collect(),
            ..TicketRow::default()
        }
    }

    #[test]
    fn issues_with_work_alone_are_read() {
        let jira = TicketKey::jira("ENG-1").unwrap();
        let left = TicketRow {
            left: Some(TicketDeparture::Deleted),
            ..build_row(build_ticket(4), true, true)
        };
        let place = build_place();
        let open = BTreeSet::from([&place]);
        for (row, is_read) in [
            (build_row(build_ticket(1), true, false), true),
            (build_row(build_ticket(2), false, true), true),
            (build_row(build_ticket(3), false, false), false),
            (left, false),
            (build_row(jira, true, true), false),
        ] {
            let mut schedule = DepartureSchedule::default();
            schedule.note_row(&row);
            let due = schedule.list_due(Some(&open)).len();
            assert_eq!(due, usize::from(is_read), "{row:?}");
        }
    }

    #[test]
    fn ended_pull_request_ends_reads() {
        let mut schedule = DepartureSchedule::default();
        let place = build_place();
        let row = build_row(build_ticket(1), false, true);
        schedule.note_row(&row);
        assert!(schedule.list_due(Some(&BTreeSet::new())).is_empty());
        // The pull request was new in the round before.
        assert_eq!(schedule.list_due(Some(&BTreeSet::from([&place]))).len(), 1);
        for _ in 0..2 {
            assert!(schedule.list_due(Some(&BTreeSet::new())).is_empty());
        }
        assert!(schedule.watched.is_empty());
        schedule.note_row(&row);
        assert_eq!(schedule.list_due(Some(&BTreeSet::from([&place]))).len(), 1);
    }

    #[test]
    fn unknown_pull_requests_end_no_reads() {
        let mut schedule = DepartureSchedule::default();
        let place = build_place();
        schedule.note_row(&build_row(build_ticket(1), false, true));
        schedule.note_row(&build_row(build_ticket(2), true, false));
        for _ in 0..3 {
            assert_eq!(schedule.list_due(None), [build_ticket(2)]);
        }
        let open = BTreeSet::from([&place]);
        assert_eq!(schedule.list_due(Some(&open)).len(), 2);
    }

    #[test]
    fn rounds_reach_every_issue_in_turn() {
        let mut schedule = DepartureSchedule::default();
        let most = 2 * AT_ONCE as u64;
        for number in 0..most {
            schedule.note_row(&build_row(build_ticket(number), true, false));
        }
        let mut read = BTreeSet::new();
        for _ in 0..2 {
            let due = schedule.list_due(Some(&BTreeSet::new()));
            assert_eq!(due.len(), AT_ONCE);
            read.extend(due);
        }
        assert_eq!(read.len() as u64, most, "each once");
    }
}

//! Known runs and pull requests of one ticket, and the state of the work on it.

use std::sync::Arc;

use api::types::{PullRequestLine, TicketStanding};
use domain::{
    PullRequestRef, PullRequestStatus, RunOverview, RunStatus, RunSummary, StopReason, TicketKey, Timestamp,
};

// Largest number of pull requests with a run or a ticket.
const MOST_PULL_REQUESTS: usize = 10;

/// A run with its overview, which is absent until it begins.
pub(super) struct KnownRun {
    pub(super) summary: RunSummary,
    pub(super) overview: Option<Arc<RunOverview>>,
}

/// Known runs and pull requests of one ticket.
pub(super) struct TicketHistory {
    pub(super) ticket: TicketKey,
    /// The oldest run is first.
    pub(super) runs: Vec<KnownRun>,
    pub(super) pull_requests: Vec<PullRequestLine>,
    /// Reason for the quarantine.
    pub(super) quarantined: Option<String>,
}

/// Builds the lines of the first pull requests, with their status in the index.
pub(super) fn build_pull_request_lines(
    pull_requests: &[PullRequestRef],
    find_status: impl Fn(&PullRequestRef) -> Option<PullRequestStatus>,
) -> Vec<PullRequestLine> {
    let listed = pull_requests.iter().take(MOST_PULL_REQUESTS);
    listed
        .map(|one| PullRequestLine::new(one, find_status(one)))
        .collect()
}

impl TicketHistory {
    /// State of the work.
    pub(super) fn standing(&self) -> TicketStanding {
        let statuses = || self.runs.iter().map(|run| &run.summary.status);
        let is_for_person = |status: &RunStatus| matches!(status, RunStatus::Parked { waits_for } if waits_for.is_for_person());
        if self.quarantined.is_some() || statuses().any(is_for_person) {
            return TicketStanding::NeedsPerson;
        }
        if statuses().any(|status| !matches!(status, RunStatus::Finished { .. })) {
            return TicketStanding::Working;
        }
        if self.last_stop().is_some_and(StopReason::is_failure) {
            return TicketStanding::Failed;
        }
        let has = |wanted| self.pull_requests.iter().any(|one| one.status == Some(wanted));
        if has(PullRequestStatus::Open) {
            TicketStanding::Open
        } else if has(PullRequestStatus::Merged) {
            TicketStanding::Merged
        } else if has(PullRequestStatus::Closed) {
            TicketStanding::Closed
        } else {
            TicketStanding::Done
        }
    }

    fn last_stop(&self) -> Option<&StopReason> {
        match &self.runs.last()?.summary.status {
            RunStatus::Finished { reason } => Some(reason),
            RunStatus::Queued | RunStatus::Active | RunStatus::Parked { .. } => None,
        }
    }

    /// Time of the first known request.
    pub(super) fn started_at(&self) -> Option<Timestamp> {
        self.runs.iter().map(|run| run.summary.started_at).min()
    }

    /// Time at which the last run ended; `None` while a run is live.
    pub(super) fn finished_at(&self) -> Option<Timestamp> {
        let ends: Option<Vec<_>> = self.runs.iter().map(|run| run.summary.finished_at).collect();
        ends?.into_iter().max()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use domain::{Job, WaitCondition};

    use super::*;

    const DAY_MS: i64 = 86_400_000;

    /// Run of a ticket at a sequence. It begins as many days after 1970 as its sequence, and ends an hour later.
    pub(in super::super) fn build_known_run(
        ticket: &TicketKey,
        sequence: u64,
        status: RunStatus,
    ) -> KnownRun {
        let started_at = Timestamp::from_unix_ms(i64::try_from(sequence).unwrap() * DAY_MS);
        let is_over = matches!(status, RunStatus::Finished { .. });
        KnownRun {
            summary: RunSummary {
                id: format!("{ticket}@{sequence}").parse().unwrap(),
                job: Job::Implement,
                status,
                started_at,
                finished_at: is_over.then(|| started_at.plus_ms(3_600_000)),
                turns: 1,
            },
            overview: None,
        }
    }

    pub(in super::super) fn build_history(
        ticket: &TicketKey,
        statuses: &[RunStatus],
        pull_request: Option<PullRequestStatus>,
    ) -> TicketHistory {
        let runs = (1..).zip(statuses);
        TicketHistory {
            ticket: ticket.clone(),
            runs: runs
                .map(|(sequence, status)| build_known_run(ticket, sequence, status.clone()))
                .collect(),
            pull_requests: Vec::from_iter(pull_request.map(|status| PullRequestLine {
                repository: "acme/shop".to_owned(),
                number: 7,
                url: "https://github.com/acme/shop/pull/7".to_owned(),
                status: Some(status),
            })),
            quarantined: None,
        }
    }

    pub(in super::super) const fn finished(reason: StopReason) -> RunStatus {
        RunStatus::Finished { reason }
    }

    #[test]
    fn live_and_failed_runs_precede_pull_requests() {
        let ticket: TicketKey = "jira:ENG-1".parse().unwrap();
        let parked = |waits_for| RunStatus::Parked { waits_for };
        let done = || finished(StopReason::Completed);
        let failed = || finished(StopReason::NoPlan);
        let merged = Some(PullRequestStatus::Merged);
        for (statuses, pull_request, expected) in [
            (
                vec![parked(WaitCondition::Answer), done()],
                merged,
                TicketStanding::NeedsPerson,
            ),
            (
                vec![done(), parked(WaitCondition::Report)],
                merged,
                TicketStanding::Working,
            ),
            (vec![done(), failed()], merged, TicketStanding::Failed),
            (vec![failed(), done()], merged, TicketStanding::Merged),
            (vec![done()], Some(PullRequestStatus::Open), TicketStanding::Open),
            (
                vec![done()],
                Some(PullRequestStatus::Closed),
                TicketStanding::Closed,
            ),
            (vec![done()], None, TicketStanding::Done),
        ] {
            let history = build_history(&ticket, &statuses, pull_request);
            assert_eq!(history.standing(), expected, "{statuses:?} {pull_request:?}");
        }
        let quarantined = TicketHistory {
            quarantined: Some("taken over too often".to_owned()),
            ..build_history(&ticket, &[done()], None)
        };
        assert_eq!(quarantined.standing(), TicketStanding::NeedsPerson);
    }

    #[test]
    fn ticket_ends_with_its_last_run() {
        let ticket: TicketKey = "jira:ENG-1".parse().unwrap();
        let done = || finished(StopReason::Completed);
        let over = build_history(&ticket, &[done(), done()], None);
        assert_eq!(over.started_at(), Some(Timestamp::from_unix_ms(DAY_MS)));
        assert_eq!(
            over.finished_at(),
            Some(Timestamp::from_unix_ms(2 * DAY_MS + 3_600_000))
        );
        let live = build_history(&ticket, &[done(), RunStatus::Active], None);
        assert_eq!(live.finished_at(), None);
    }
}

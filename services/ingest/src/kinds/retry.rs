//! Retry request of a user.

use domain::{Job, Reason, Row, RunStatus, StopReason, TicketKey, Timestamp, TriggerKey};

use super::{Follows, Kind, Verdict, work::Work};
use crate::facts::{Facts, Need};

/// Retry request of an authorized user: a waiting run continues at once, a failed job starts again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    pub(crate) ticket: TicketKey,
    pub(crate) key: TriggerKey,
    pub(crate) at: Timestamp,
    pub(crate) by: String,
}

impl Kind for Retry {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        Ok(match left_to_do(facts.row(&self.ticket)?) {
            Left::GoOn => Verdict::from(Follows {
                ticket: self.ticket.clone(),
                key: self.key.clone(),
                at: self.at,
                actor: Some(self.by.clone()),
                reason: Reason::RetryRequested,
            }),
            Left::Nothing => Verdict::nothing("nothing has failed that could be tried again"),
            Left::Again if matches!(self.ticket, TicketKey::Folder { .. }) => {
                Verdict::nothing("a ticket of a folder is started again with its text")
            }
            Left::Again => {
                let (ticket, key, by) = (self.ticket.clone(), self.key.clone(), self.by.clone());
                Verdict::Becomes(Box::new(Work::ordered(ticket, key, None, self.at, by)))
            }
        })
    }
}

/// Effect of a retry.
#[derive(Debug, PartialEq, Eq)]
enum Left {
    /// A run waits, or the ticket is quarantined: it continues.
    GoOn,
    /// The last run failed: the job is requested again.
    Again,
    /// Nothing has failed.
    Nothing,
}

fn left_to_do(row: &Row) -> Left {
    if row.quarantined.is_some() || row.waiting_for_retry().next().is_some() {
        return Left::GoOn;
    }
    let last = row.runs.iter().rev().find(|run| run.job == Job::Implement);
    match last.map(|run| &run.status) {
        Some(RunStatus::Finished { reason }) if *reason != StopReason::Completed => Left::Again,
        Some(_) | None => Left::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use domain::{Lane, Pending, RunId, Timestamp, WaitsFor};

    use super::*;

    #[test]
    fn retry_continues_restarts_or_does_nothing() {
        let run = RunId::new("jira:ENG-1".parse().unwrap(), 5);
        let with = |status: RunStatus| {
            let mut row = Row::default();
            row.open(
                Pending::new(run.clone(), Job::Implement, Lane::Talk),
                Timestamp::default(),
            );
            row.run_mut(&run).unwrap().status = status;
            row
        };
        let finished = |reason| with(RunStatus::Finished { reason });
        let parked = |waits_for| with(RunStatus::Parked { waits_for });
        assert_eq!(left_to_do(&Row::default()), Left::Nothing);
        assert_eq!(left_to_do(&with(RunStatus::Active)), Left::Nothing);
        assert_eq!(left_to_do(&parked(WaitsFor::Report)), Left::Nothing);
        assert_eq!(left_to_do(&finished(StopReason::Completed)), Left::Nothing);
        assert_eq!(left_to_do(&parked(WaitsFor::Retry)), Left::GoOn);
        assert_eq!(
            left_to_do(&finished(StopReason::TurnLimit { turns: 50 })),
            Left::Again
        );
        let quarantined = Row {
            quarantined: Some("stuck".to_owned()),
            ..Row::default()
        };
        assert_eq!(left_to_do(&quarantined), Left::GoOn);
    }
}

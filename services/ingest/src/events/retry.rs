//! Retry request of a user.

use domain::{Job, RunStatus, StopReason, TicketKey, TicketRow, Timestamp, TriggerKey, TriggerReason};

use super::{EventKind, EventVerdict, NewTrigger, work::WorkRequestEvent};
use crate::facts::{DecisionFacts, Need};

/// Retry request of an authorized user: a waiting run continues at once, a failed job starts again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RetryEvent {
    pub(crate) ticket: TicketKey,
    pub(crate) key: TriggerKey,
    pub(crate) at: Timestamp,
    pub(crate) by: String,
}

impl EventKind for RetryEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        Ok(match find_retry_effect(facts.row(&self.ticket)?) {
            RetryEffect::GoOn => EventVerdict::from(NewTrigger {
                ticket: self.ticket.clone(),
                key: self.key.clone(),
                at: self.at,
                actor: Some(self.by.clone()),
                reason: TriggerReason::RetryRequested,
            }),
            RetryEffect::Nothing => EventVerdict::nothing("nothing has failed that could be tried again"),
            RetryEffect::Again if matches!(self.ticket, TicketKey::Folder { .. }) => {
                EventVerdict::nothing("a ticket of a folder is started again with its text")
            }
            RetryEffect::Again => {
                let (ticket, key, by) = (self.ticket.clone(), self.key.clone(), self.by.clone());
                EventVerdict::Becomes(Box::new(WorkRequestEvent::ordered(
                    ticket, key, None, self.at, by,
                )))
            }
        })
    }
}

/// Effect of a retry.
#[derive(Debug, PartialEq, Eq)]
enum RetryEffect {
    /// A run waits, or the ticket is quarantined: it continues.
    GoOn,
    /// The last run failed: the job is requested again.
    Again,
    /// Nothing has failed.
    Nothing,
}

fn find_retry_effect(row: &TicketRow) -> RetryEffect {
    if row.quarantined.is_some() || row.waiting_for_retry().next().is_some() {
        return RetryEffect::GoOn;
    }
    let last = row.runs.iter().rev().find(|run| run.job == Job::Implement);
    match last.map(|run| &run.status) {
        Some(RunStatus::Finished { reason }) if *reason != StopReason::Completed => RetryEffect::Again,
        Some(_) | None => RetryEffect::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use domain::{Lane, PendingRun, RunId, Timestamp, WaitCondition};

    use super::*;

    #[test]
    fn retry_continues_restarts_or_does_nothing() {
        let run = RunId::new("jira:ENG-1".parse().unwrap(), 5);
        let with = |status: RunStatus| {
            let mut row = TicketRow::default();
            row.open(
                PendingRun::new(run.clone(), Job::Implement, Lane::Talk),
                Timestamp::default(),
            );
            row.run_mut(&run).unwrap().status = status;
            row
        };
        let finished = |reason| with(RunStatus::Finished { reason });
        let parked = |waits_for| with(RunStatus::Parked { waits_for });
        assert_eq!(find_retry_effect(&TicketRow::default()), RetryEffect::Nothing);
        assert_eq!(find_retry_effect(&with(RunStatus::Active)), RetryEffect::Nothing);
        assert_eq!(
            find_retry_effect(&parked(WaitCondition::Report)),
            RetryEffect::Nothing
        );
        assert_eq!(
            find_retry_effect(&finished(StopReason::Completed)),
            RetryEffect::Nothing
        );
        assert_eq!(
            find_retry_effect(&parked(WaitCondition::Retry)),
            RetryEffect::GoOn
        );
        assert_eq!(
            find_retry_effect(&finished(StopReason::TurnLimit { turns: 50 })),
            RetryEffect::Again
        );
        let quarantined = TicketRow {
            quarantined: Some("stuck".to_owned()),
            ..TicketRow::default()
        };
        assert_eq!(find_retry_effect(&quarantined), RetryEffect::GoOn);
    }
}

//! Request of an authorized user to stop a run, or all live runs of a ticket.

use domain::{RunId, TicketKey, Timestamp, TriggerKey, TriggerReason};

use super::{EventKind, EventVerdict, NewTrigger};
use crate::facts::{DecisionFacts, Need};

/// Stop request of an authorized user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StopEvent {
    pub(crate) ticket: TicketKey,
    pub(crate) key: TriggerKey,
    pub(crate) at: Timestamp,
    pub(crate) by: String,
    /// Run to stop; absent: all live runs.
    pub(crate) run: Option<RunId>,
}

impl EventKind for StopEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        if let Some(sequence) = facts.known(&self.ticket, &self.key)? {
            return Ok(EventVerdict::Known(*sequence));
        }
        Ok(EventVerdict::from(NewTrigger {
            ticket: self.ticket.clone(),
            key: self.key.clone(),
            at: self.at,
            actor: Some(self.by.clone()),
            reason: TriggerReason::StopRequested {
                run: self.run.clone(),
            },
        }))
    }
}

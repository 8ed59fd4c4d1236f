//! Request of an authorized user to stop a run, or all live runs of a ticket.

use domain::{Reason, RunId, TicketKey, Timestamp, TriggerKey};

use super::{Follows, Kind, Verdict};
use crate::facts::{Facts, Need};

/// Stop request of an authorized user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    pub(crate) ticket: TicketKey,
    pub(crate) key: TriggerKey,
    pub(crate) at: Timestamp,
    pub(crate) by: String,
    /// Run to stop; absent: all live runs.
    pub(crate) run: Option<RunId>,
}

impl Kind for Stopped {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        if let Some(sequence) = facts.known(&self.ticket, &self.key)? {
            return Ok(Verdict::Known(*sequence));
        }
        Ok(Verdict::from(Follows {
            ticket: self.ticket.clone(),
            key: self.key.clone(),
            at: self.at,
            actor: Some(self.by.clone()),
            reason: Reason::StopRequested {
                run: self.run.clone(),
            },
        }))
    }
}

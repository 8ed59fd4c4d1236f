//! A run ended without its goal.

use domain::{TicketKey, report::RunStopped};

use super::{Asked, Effects, Kind, Told};
use crate::{effects::Unassign, message};

impl Kind for RunStopped {
    /// What failed again and again is taken from its assignee, so that giving it back asks for work.
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        let has_assignee = !matches!(asked.report.ticket, TicketKey::Folder { .. });
        if !has_assignee || !self.reason.breaks_circuit() {
            return Effects::new();
        }
        vec![Box::new(Unassign {
            ticket: asked.report.ticket.clone(),
        })]
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        let (draft, branch) = (self.pull_request.as_ref(), self.branch.as_ref());
        message::stopped(self.job, &self.reason, draft, branch, &told.try_again())
    }
}

//! A run ended without its goal.

use domain::{StopReason, TicketKey, report::RunStopped};

use super::{Asked, Effects, Kind, Told, failed};
use crate::{board::Mark, effects::Unassign, message};

impl Kind for RunStopped {
    /// What failed again and again is taken from its assignee, so that giving it back asks for work.
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        let mut effects = vec![failed(self.pull_request.as_ref(), &self.reason)];
        let has_assignee = !matches!(asked.report.ticket, TicketKey::Folder { .. });
        if has_assignee && self.reason.breaks_circuit() {
            effects.push(Box::new(Unassign {
                ticket: asked.report.ticket.clone(),
            }));
        }
        effects
    }

    fn mark(&self, _: &Told<'_>) -> Option<Mark> {
        Some(match &self.reason {
            StopReason::Stopped { .. } | StopReason::Rejected { .. } => Mark::Stopped,
            StopReason::Completed => Mark::Done,
            _ => Mark::Failed,
        })
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        let (draft, branch) = (self.pull_request.as_ref(), self.branch.as_ref());
        message::stopped(self.job, &self.reason, draft, branch, &told.try_again())
    }
}

//! Report of a run that ended without its goal.

use domain::{Job, StopReason, report::RunStopped};

use super::{Asked, Effects, Kind, Told, failed};
use crate::{board::Mark, message};

impl Kind for RunStopped {
    /// Unassigns the ticket, so that a new assignment requests work.
    ///
    /// After repeated failures a person loses the assignment, too. After other work on a change without a result,
    /// only our account does.
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        let mut effects = vec![failed(self.pull_request.as_ref(), &self.reason)];
        let is_change = matches!(self.job, Job::Implement | Job::FixCi | Job::AddressReview);
        if self.reason.breaks_circuit() {
            effects.extend(asked.given_back(true));
        } else if is_change && self.reason.gives_back() {
            effects.extend(asked.given_back(false));
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

//! Report of a run that ended without its goal.

use domain::{StopReason, report::RunStopped};

use super::{EffectList, NoticeContext, PlanContext, ReportKind, show_failed_try};
use crate::{board::WorkEnd, message};

impl ReportKind for RunStopped {
    /// Unassigns the ticket, so that a new assignment requests work.
    ///
    /// After repeated failures a person loses the assignment, too. After other work on a change without a result,
    /// only our account does.
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        let mut effects = vec![show_failed_try(self.pull_request.as_ref(), &self.reason)];
        if self.reason.breaks_circuit() {
            effects.extend(asked.given_back(true));
        } else if self.job.is_change() && self.reason.gives_back() {
            effects.extend(asked.given_back(false));
        }
        effects
    }

    fn mark(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        Some(match &self.reason {
            StopReason::Stopped { .. } | StopReason::Rejected { .. } => WorkEnd::Stopped,
            StopReason::Completed => WorkEnd::Done,
            _ => WorkEnd::Failed,
        })
    }

    fn words(&self, told: &NoticeContext<'_>) -> Vec<String> {
        let (draft, branch) = (self.pull_request.as_ref(), self.branch.as_ref());
        message::render_stop(self.job, &self.reason, draft, branch, &told.try_again())
    }
}

//! Report of failed checks: the pull request stays a draft.

use domain::{TicketKey, report::ChecksFailed};

use super::{EffectList, NoticeContext, PlanContext, ReportKind, show_checks_result};
use crate::{
    effects::{CallFor, CallPeople, CommentThread},
    message,
    rounds::ChecksResult,
};

impl ReportKind for ChecksFailed {
    /// Notifies people if no repair follows: on the pull request, and on a Jira ticket if no reviewer is known at
    /// GitHub. The ticket is unassigned, as after all work without a result.
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        let mut effects = vec![show_checks_result(
            &self.pull_request,
            &self.head,
            ChecksResult::Failed,
            &self.page,
        )];
        if self.calls().is_none() {
            return effects;
        }
        let ticket = &asked.report.ticket;
        let is_on_jira = matches!(ticket, TicketKey::Jira { .. });
        let beside = (is_on_jira && self.asked.is_empty()).then(|| CommentThread::of(ticket));
        let threads = [CommentThread::on(&self.pull_request)].into_iter().chain(beside);
        effects.extend(threads.map(|thread| {
            let why = CallFor::Checks(self.clone());
            Box::new(CallPeople { thread, why }) as _
        }));
        effects.extend(asked.given_back(false));
        effects
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::checks_failed(&self.pull_request, &self.failed, self.unrepaired)
    }
}

//! Report of failed checks: the pull request stays a draft.

use domain::{TicketKey, report::ChecksFailed};

use super::{Asked, Effects, Kind, Told, checked};
use crate::{
    effects::{Call, CallFor, Thread},
    message,
    rounds::Checked,
};

impl Kind for ChecksFailed {
    /// Notifies people if no repair follows: on the pull request, and on a Jira ticket if no reviewer is known at
    /// GitHub. The ticket is unassigned, as after all work without a result.
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        let mut effects = vec![checked(&self.pull_request, &self.head, Checked::Failed, &self.page)];
        if self.calls().is_none() {
            return effects;
        }
        let ticket = &asked.report.ticket;
        let is_on_jira = matches!(ticket, TicketKey::Jira { .. });
        let beside = (is_on_jira && self.asked.is_empty()).then(|| Thread::of(ticket));
        let threads = [Thread::on(&self.pull_request)].into_iter().chain(beside);
        effects.extend(threads.map(|thread| {
            let why = CallFor::Checks(self.clone());
            Box::new(Call { thread, why }) as _
        }));
        effects.extend(asked.given_back(false));
        effects
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        message::checks_failed(&self.pull_request, &self.failed, self.unrepaired)
    }
}

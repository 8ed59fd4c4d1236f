//! CI is red: the draft is kept.

use domain::{TicketKey, report::ChecksFailed};

use super::{Asked, Effects, Kind, Told, checked};
use crate::{
    effects::{Call, CallFor, Thread},
    message,
    rounds::Checked,
};

impl Kind for ChecksFailed {
    /// Where a person has to go on, one is called: on the pull request, and on a ticket of Jira when nobody is known on
    /// GitHub. The ticket is given back, as after any work that came to no end.
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

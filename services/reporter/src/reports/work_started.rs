//! Report of started work.

use domain::{Job, report::WorkStarted};

use super::{EffectList, NoticeContext, NoticePlace, PlanContext, ReportKind, show_round_event};
use crate::{board::FinishedWork, message, rounds::RoundEvent};

impl ReportKind for WorkStarted {
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        let mut effects = EffectList::new();
        // Work on an existing pull request leaves the status of its ticket unchanged.
        if self.job == Job::Implement {
            let moved = asked.moved(&[&asked.rules.agent.in_progress_status]);
            effects.extend(asked.assigned().into_iter().chain(moved));
        }
        if self.job.is_change() {
            effects.push(show_round_event(
                &self.repository,
                RoundEvent::Begun(self.begun.clone()),
            ));
        }
        effects
    }

    fn heard(&self) -> NoticePlace {
        NoticePlace::AtStart
    }

    fn lasting(&self, _: &NoticeContext<'_>) -> FinishedWork {
        match self.job {
            Job::Implement if !self.begun.is_again => FinishedWork::nothing(),
            _ => FinishedWork::default(),
        }
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        vec![message::render_start(self.job, &self.repository, &self.begun)]
    }
}

//! Report of a person's push to the branch of our pull request.

use domain::report::PushedByOthers;

use super::{EffectList, NoticeContext, PlanContext, ReportKind, show_round_event};
use crate::{effects::BackToDraft, message, rounds::RoundEvent};

impl ReportKind for PushedByOthers {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        let pushed = RoundEvent::Pushed {
            branch: None,
            head: self.head.clone(),
            by: Some(self.by.clone()),
        };
        vec![
            Box::new(BackToDraft {
                pull_request: self.pull_request.clone(),
            }),
            show_round_event(&self.pull_request.repository, pushed),
        ]
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        vec![message::pushed_by_others(
            &self.by,
            &self.pull_request,
            &self.head,
        )]
    }
}

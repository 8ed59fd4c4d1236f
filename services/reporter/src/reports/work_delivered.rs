//! Report of a complete change that ends its ticket without a pull request.

use domain::{OutboundReceipt, report::WorkDelivered};

use super::{EffectList, NoticeContext, PlanContext, ReportKind};
use crate::{
    board::{FinishedWork, WorkEnd},
    effect_output::EffectOutput,
    effects::{self, ShowChange},
    message,
};

impl ReportKind for WorkDelivered {
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        // The shown change is the pushed one, and the inspection comes before the push.
        let mut effects: EffectList = vec![
            Box::new(ShowChange(self.push.clone())),
            Box::new(effects::PushBranch(self.push.clone())),
        ];
        effects.extend(asked.done());
        effects.extend(asked.celebrated());
        effects
    }

    fn mark(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        Some(WorkEnd::Done)
    }

    fn words(&self, told: &NoticeContext<'_>) -> Vec<String> {
        message::render_delivery(&self.push, told.made.moved.as_ref())
    }

    fn lasting(&self, told: &NoticeContext<'_>) -> FinishedWork {
        FinishedWork {
            done: Some(message::render_finished_work(Some(&self.description))),
            changed: told.made.shown.as_ref().map(message::shown_change),
        }
    }

    fn receipt(&self, made: EffectOutput, _: &PlanContext<'_>) -> OutboundReceipt {
        made.pushed
            .map_or(OutboundReceipt::Told, |head| OutboundReceipt::Pushed {
                branch: self.push.branch.clone(),
                head,
            })
    }
}

//! Report of a push that a person has to decide about.

use domain::{OutboundReceipt, PushProposal};

use super::{EffectList, NoticeContext, NoticePlace, PlanContext, ReportKind};
use crate::{
    effect_output::{EffectOutput, ShownChange},
    effects::ShowChange,
    message,
};

impl ReportKind for PushProposal {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        vec![Box::new(ShowChange(self.push.clone()))]
    }

    fn heard(&self) -> NoticePlace {
        NoticePlace::Apart
    }

    fn words(&self, told: &NoticeContext<'_>) -> Vec<String> {
        let what = (self.description.as_deref(), told.made.shown.as_ref());
        message::decision_needed(&self.push, told.ticket, what, told.run)
    }

    fn receipt(&self, made: EffectOutput, _: &PlanContext<'_>) -> OutboundReceipt {
        made.shown
            .map_or(OutboundReceipt::Told, |ShownChange { head, diff, .. }| {
                OutboundReceipt::DecisionAsked { head, diff }
            })
    }
}

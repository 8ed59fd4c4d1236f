//! Report of a push that a person has to decide about.

use domain::{PushProposal, OutboundReceipt};

use super::{PlanContext, EffectList, NoticePlace, ReportKind, NoticeContext};
use crate::{
    effects::ShowChange,
    effect_output::{EffectOutput, ShownChange},
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
        made.shown.map_or(OutboundReceipt::Told, |ShownChange { head, diff, .. }| {
            OutboundReceipt::DecisionAsked { head, diff }
        })
    }
}

//! Report of a push that a person has to decide about.

use domain::{OutboundReceipt, PushProposal};

use super::{EffectList, NoticeContext, NoticePlace, PlanContext, ReportKind};
use crate::{
    effects::ShowChange,
    message,
    receipt::{EffectReceipts, ShownChange},
};

impl ReportKind for PushProposal {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        vec![Box::new(ShowChange(self.push.clone()))]
    }

    fn heard(&self) -> NoticePlace {
        NoticePlace::Apart
    }

    fn words(&self, told: &NoticeContext<'_>) -> Vec<String> {
        let what = (self.description.as_deref(), told.receipts.last());
        message::decision_needed(&self.push, told.ticket, what, told.run)
    }

    fn receipt(&self, receipts: &EffectReceipts, _: &PlanContext<'_>) -> OutboundReceipt {
        match receipts.last() {
            Some(ShownChange { head, diff, .. }) => OutboundReceipt::DecisionAsked {
                head: head.clone(),
                diff: diff.clone(),
            },
            None => OutboundReceipt::Told,
        }
    }
}

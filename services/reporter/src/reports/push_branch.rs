//! Report that requests a push.

use domain::{BranchPush, OutboundReceipt};

use super::{EffectList, NoticeContext, NoticePlace, PlanContext, ReportKind, show_round_event};
use crate::{
    effects,
    receipt::{EffectReceipts, PushedHead},
    rounds::RoundEvent,
};

impl ReportKind for BranchPush {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        let pushed = RoundEvent::Pushed {
            branch: Some(self.branch.clone()),
            head: self.head.clone(),
            by: None,
        };
        vec![
            Box::new(effects::PushBranch(self.clone())),
            show_round_event(&self.repository, pushed),
        ]
    }

    fn heard(&self) -> NoticePlace {
        NoticePlace::Nowhere
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        Vec::new()
    }

    fn receipt(&self, receipts: &EffectReceipts, _: &PlanContext<'_>) -> OutboundReceipt {
        match receipts.last() {
            Some(PushedHead(head)) => OutboundReceipt::Pushed {
                branch: self.branch.clone(),
                head: head.clone(),
            },
            None => OutboundReceipt::Told,
        }
    }
}

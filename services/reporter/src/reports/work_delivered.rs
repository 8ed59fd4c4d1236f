//! Report of a complete change that ends its ticket without a pull request.

use domain::{OutboundReceipt, report::WorkDelivered};

use super::{EffectList, NoticeContext, PlanContext, ReportKind};
use crate::{
    board::{FinishedWork, WorkEnd},
    effects::{self, ShowChange},
    message,
    receipt::{EffectReceipts, PushedHead},
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
        message::render_delivery(&self.push, told.moved())
    }

    fn lasting(&self, told: &NoticeContext<'_>) -> FinishedWork {
        FinishedWork {
            done: Some(message::render_finished_work(Some(&self.description))),
            changed: told.receipts.last().map(message::shown_change),
        }
    }

    fn receipt(&self, receipts: &EffectReceipts, _: &PlanContext<'_>) -> OutboundReceipt {
        match receipts.last() {
            Some(PushedHead(head)) => OutboundReceipt::Pushed {
                branch: self.push.branch.clone(),
                head: head.clone(),
            },
            None => OutboundReceipt::Told,
        }
    }
}

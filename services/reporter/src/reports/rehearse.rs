//! Report of a rehearsal: returns the effects and texts of other requests, and does nothing.

use domain::{
    OutboundReceipt, OutboundRequest, RehearsedEffects, report::RehearsalRequest, text::truncate_text,
};

use super::{NoticeContext, NoticePlace, PlanContext, ReportKind, name_effects, plan_effects, render_report};
use crate::{receipt::EffectReceipts, scan};

// Length of the text of one request in the receipt, in characters.
const WORDS_CHARS: usize = 4_000;

impl ReportKind for RehearsalRequest {
    fn heard(&self) -> NoticePlace {
        NoticePlace::Nowhere
    }

    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        Vec::new()
    }

    fn receipt(&self, _: &EffectReceipts, asked: &PlanContext<'_>) -> OutboundReceipt {
        let would = self.requests.iter().map(|request| {
            let report = OutboundRequest {
                request: request.clone(),
                ..asked.report.clone()
            };
            rehearse_report(&report, asked)
        });
        OutboundReceipt::Rehearsed {
            would: would.collect(),
        }
    }
}

fn rehearse_report(report: &OutboundRequest, asked: &PlanContext<'_>) -> RehearsedEffects {
    let effects = plan_effects(report, asked.rules);
    let told = NoticeContext {
        receipts: &EffectReceipts::default(),
        unmoved: None,
        ticket: &report.ticket,
        run: report.run.as_ref(),
        again: &asked.rules.agent.status,
    };
    // Without a notification, the text of the request is not used, so it is not returned.
    let is_told = name_effects(&effects).any(|(_, effect)| effect.tells_in().is_some());
    let said = if is_told {
        render_report(&report.request, &told)
    } else {
        String::new()
    };
    RehearsedEffects {
        request: report.request.summary(),
        effects: name_effects(&effects).map(|(name, _)| name).collect(),
        words: truncate_text(&scan::redact_credentials(&said), WORDS_CHARS),
    }
}

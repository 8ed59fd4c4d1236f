//! Report of a rehearsal: returns the effects and texts of other requests, and does nothing.

use domain::{Receipt, Rehearsed, Report, report::Rehearse, text::capped};

use super::{Asked, Heard, Kind, Told, named, plan, words};
use crate::{made::Made, scan};

// Length of the text of one request in the receipt, in characters.
const WORDS_CHARS: usize = 4_000;

impl Kind for Rehearse {
    fn heard(&self) -> Heard {
        Heard::Nowhere
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        Vec::new()
    }

    fn receipt(&self, _: Made, asked: &Asked<'_>) -> Receipt {
        let would = self.requests.iter().map(|request| {
            let report = Report {
                request: request.clone(),
                ..asked.report.clone()
            };
            rehearsed(&report, asked)
        });
        Receipt::Rehearsed {
            would: would.collect(),
        }
    }
}

fn rehearsed(report: &Report, asked: &Asked<'_>) -> Rehearsed {
    let effects = plan(report, asked.rules);
    let told = Told {
        made: &Made::default(),
        ticket: &report.ticket,
        run: report.run.as_ref(),
        again: &asked.rules.agent.status,
    };
    // Without a notification, the text of the request is not used, so it is not returned.
    let is_told = named(&effects).any(|(_, effect)| effect.tells_in().is_some());
    let said = if is_told { words(&report.request, &told) } else { String::new() };
    Rehearsed {
        request: report.request.summary(),
        effects: named(&effects).map(|(name, _)| name).collect(),
        words: capped(&scan::redact(&said), WORDS_CHARS),
    }
}

//! Nothing is done: what would be done for other requests is given back.

use domain::{Receipt, Rehearsed, Report, report::Rehearse, text::capped};

use super::{Asked, Heard, Kind, Told, named, plan, words};
use crate::{made::Made, scan};

/// Of what people would read for one request.
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
    // Where nothing is told, no words leave either.
    let is_told = named(&effects).any(|(_, effect)| effect.tells_in().is_some());
    let said = if is_told { words(&report.request, &told) } else { String::new() };
    Rehearsed {
        request: report.request.summary(),
        effects: named(&effects).map(|(name, _)| name).collect(),
        words: capped(&scan::redact(&said), WORDS_CHARS),
    }
}

//! What is known of a change, for the people who decide about it and who review it.

use domain::{ChangeSize, Description, Handover, JobRequest};

use crate::run::machine::RunState;

pub(super) fn describe(state: &RunState, request: &JobRequest, handover: &Handover) -> Description {
    let proof = state.proof();
    let change = state.checks.change.as_ref().and_then(Option::as_ref);
    // An executor of an earlier release names no files.
    let change = change.filter(|change| !change.changed.is_empty());
    Description {
        handover: handover.clone(),
        cut_short: state.cut_short().cloned(),
        kind: request.text.kind.clone(),
        ticket: request.text.summary.clone(),
        change: change.map(|change| ChangeSize::of(&change.changed, &change.modules)),
        checks: proof.map(|proof| proof.rows.clone()).unwrap_or_default(),
        level: proof.map(|proof| proof.level),
        findings: proof.map(|proof| proof.findings.clone()).unwrap_or_default(),
        objections: Vec::new(),
    }
}

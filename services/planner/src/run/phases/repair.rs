//! Runs the automatic fixes of the rules before the model works on failed checks.
//!
//! If they change files, that is the repair; if its proof fails, the model continues from it.

use domain::{Exit, Fact, Handover, PhaseOutput};

use super::tidy::{repaired_by, run_repairs};
use crate::run::machine::{Action, PhaseSpec, RunState, Step};

// Kind and title of the commit: `style: auto-fix`.
const KIND: &str = "style";
const TITLE: &str = "auto-fix";

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    let Some(request) = state.request() else {
        return Step::Over;
    };
    if state.exit().is_some() || state.is_at_work() || !state.returns.is_empty() {
        return Step::Over;
    }
    let repairs = request.rules.repairs();
    match run_repairs(state, &repairs) {
        Step::Over => {}
        step => return step,
    }
    let kept = state.work().snapshot.as_ref();
    if kept.is_none_or(|kept| kept.files_changed == 0) {
        return Step::Over;
    }
    let handover = Handover {
        kind: KIND.to_owned(),
        title: TITLE.to_owned(),
        summary: repairs.join("\n"),
        repaired_by: repaired_by(state, request),
        ..Handover::default()
    };
    let exit = Exit::Finished(Box::new(handover));
    Action::Record(Fact::PhaseFinished {
        output: PhaseOutput::Work { exit },
    })
    .into()
}

/// Returns true if the automatic fixes made the change, not a model.
pub(super) fn is_auto_fix(handover: &Handover) -> bool {
    handover.kind == KIND && handover.title == TITLE
}

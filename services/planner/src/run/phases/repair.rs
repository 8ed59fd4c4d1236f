//! Runs the automatic fixes of the rules before the model works on failed checks.
//!
//! If they change files, that is the repair; if its proof fails, the model continues from it.

use domain::{Fact, PhaseOutput, WorkExit, WorkHandover};

use super::auto_fix::{repaired_by, run_repairs};
use crate::run::machine::{PhaseSpec, PlannerRunState, RunAction, RunStep};

// Kind and title of the commit: `style: auto-fix`.
const KIND: &str = "style";
const TITLE: &str = "auto-fix";

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: None,
    next: decide_step,
};

fn decide_step(state: &PlannerRunState) -> RunStep {
    let Some(request) = state.request() else {
        return RunStep::Over;
    };
    if state.outputs().exit().is_some()
        || state.conversation().is_at_work()
        || !state.outputs().returns().is_empty()
    {
        return RunStep::Over;
    }
    let repairs = request.rules.repairs();
    let step = run_repairs(state, &repairs);
    if !matches!(step, RunStep::Over) {
        return step;
    }
    let kept = state.source().work().snapshot.as_ref();
    if kept.is_none_or(|kept| kept.files_changed == 0) {
        return RunStep::Over;
    }
    let handover = WorkHandover {
        kind: KIND.to_owned(),
        title: TITLE.to_owned(),
        summary: repairs.join("\n"),
        repaired_by: repaired_by(state, request),
        ..WorkHandover::default()
    };
    let exit = WorkExit::Finished(Box::new(handover));
    RunAction::Record(Fact::PhaseFinished {
        output: PhaseOutput::Work { exit },
    })
    .into()
}

/// Returns true if the automatic fixes made the change, not a model.
pub(super) fn is_auto_fix(handover: &WorkHandover) -> bool {
    handover.kind == KIND && handover.title == TITLE
}

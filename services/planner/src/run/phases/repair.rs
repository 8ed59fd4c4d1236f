//! The repairs that the rules name run before the model looks at red checks. Where they change something, that is the repair;
//! if it does not prove, the model goes on with it.

use domain::{Exit, Fact, Handover, PhaseOutput};

use super::tidy::{repaired_by, run_repairs};
use crate::run::machine::{Action, PhaseSpec, RunState, Step};

/// What such a commit is called: `style: auto-fix`.
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

/// Whether a change is what the repairs did, and nothing of a model's.
pub(super) fn is_auto_fix(handover: &Handover) -> bool {
    handover.kind == KIND && handover.title == TITLE
}

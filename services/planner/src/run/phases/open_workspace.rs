//! Opens the workspace of the run.

use domain::{Fact, StopReason, text::take_tail};

use crate::run::machine::{PhaseSpec, PlannerRunState, PlannerWorkspaceState, RunAction, RunStep};

const LOG_CHARS: usize = 4000;

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: None,
    next: decide_step,
};

fn decide_step(state: &PlannerRunState) -> RunStep {
    match &state.source().work().workspace {
        PlannerWorkspaceState::Absent => RunAction::Record(Fact::WorkspaceRequested {
            id: state.next_id(),
            repository: None,
        })
        .into(),
        PlannerWorkspaceState::Requested(id) => RunAction::OpenWorkspace { id: id.clone() }.into(),
        PlannerWorkspaceState::Failed {
            detail, setup: true, ..
        } => RunStep::Close(StopReason::SetupFailed {
            log_tail: take_tail(detail, LOG_CHARS),
        }),
        PlannerWorkspaceState::Failed {
            detail,
            permanent: true,
            ..
        } => RunStep::Close(StopReason::WorkspaceUnavailable {
            detail: detail.clone(),
        }),
        PlannerWorkspaceState::Failed {
            detail, setup: false, ..
        } => RunStep::Retry(StopReason::WorkspaceUnavailable {
            detail: detail.clone(),
        }),
        PlannerWorkspaceState::Open(_) => RunStep::Over,
    }
}

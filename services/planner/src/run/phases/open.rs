//! Opens the workspace of the run.

use domain::{Fact, StopReason, text::tail};

use crate::run::machine::{Action, PhaseSpec, RunState, Step, Workspace};

const LOG_CHARS: usize = 4000;

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    match &state.work().workspace {
        Workspace::Absent => Action::Record(Fact::WorkspaceRequested {
            id: state.next_id(),
            repository: None,
        })
        .into(),
        Workspace::Requested(id) => Action::OpenWorkspace { id: id.clone() }.into(),
        Workspace::Failed {
            detail, setup: true, ..
        } => Step::Close(StopReason::SetupFailed {
            log_tail: tail(detail, LOG_CHARS),
        }),
        Workspace::Failed {
            detail,
            permanent: true,
            ..
        } => Step::Close(StopReason::WorkspaceUnavailable {
            detail: detail.clone(),
        }),
        Workspace::Failed {
            detail, setup: false, ..
        } => Step::Retry(StopReason::WorkspaceUnavailable {
            detail: detail.clone(),
        }),
        Workspace::Open(_) => Step::Over,
    }
}

//! Progress of a run for users. The journal contains none of it: a lost or duplicate progress report
//! changes nothing.

use domain::{
    CallId, OutboundAction, OutboundId, OutboundRequest, RunFence,
    report::{JobProgress, ProgressUpdate},
};

use super::{RunDriver, TicketError};
use crate::run::{PlannerRunState, RunAction};

/// Returns the progress of a run; absent for notices, which do no work.
pub(super) fn progress_of_run(state: &PlannerRunState) -> Option<JobProgress> {
    let job = state.request()?.job;
    Some(JobProgress {
        job,
        phase: state.conversation().dialog().map(|dialog| dialog.phase),
        clone_percent: None,
        cost: state.budget().spending().models.known_cost(),
    })
}

/// Returns the first call of a conversation, if the status comment already shows the run. Later turns have
/// no news for it.
fn first_call_of_dialog<'a>(action: &'a RunAction, state: &PlannerRunState) -> Option<&'a CallId> {
    let RunAction::AskModel { id } = action else {
        return None;
    };
    let first = state.conversation().dialog()?.turns.first()?;
    let is_announced = |request: &OutboundAction| matches!(request, OutboundAction::WorkStarted(_));
    (first.id == *id && state.delivery().last_report(is_announced).is_some()).then_some(id)
}

impl RunDriver {
    /// Shows the progress of the first clone in the status comment.
    pub(super) async fn show_clone(
        &self,
        state: &PlannerRunState,
        fence: RunFence,
        id: &CallId,
        percent: u8,
    ) -> Result<(), TicketError> {
        let progress = progress_of_run(state).map(|progress| JobProgress {
            phase: None,
            clone_percent: Some(percent),
            ..progress
        });
        let id = OutboundId::first_clone(id, percent);
        self.post_progress(state, fence, id, progress).await
    }

    /// Shows the progress of the run in the status comment, if this action changes it.
    pub(super) async fn show_progress(
        &self,
        action: &RunAction,
        state: &PlannerRunState,
        fence: RunFence,
    ) -> Result<(), TicketError> {
        let Some(id) = first_call_of_dialog(action, state) else {
            return Ok(());
        };
        let progress = progress_of_run(state);
        self.post_progress(state, fence, id.clone().into(), progress)
            .await
    }

    async fn post_progress(
        &self,
        state: &PlannerRunState,
        fence: RunFence,
        id: OutboundId,
        progress: Option<JobProgress>,
    ) -> Result<(), TicketError> {
        let report = OutboundRequest {
            progress,
            ..OutboundRequest::notice(
                id,
                state.run.ticket().clone(),
                fence,
                bootstrap::read_wall_clock(),
                OutboundAction::Progressed(ProgressUpdate {}),
            )
        };
        Ok(self.queue.reports().append(&report).await.map(drop)?)
    }
}

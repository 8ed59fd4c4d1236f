//! Progress of a run for users. The journal contains none of it: a lost or duplicate progress report
//! changes nothing.

use domain::{
    CallId, Dollars, Report, ReportId, ReportRequest, RunFence,
    report::{Progress, Progressed},
};

use super::{Driver, Trouble};
use crate::run::{Action, RunState};

/// Returns the progress of a run; absent for notices, which do no work.
pub(super) fn of(state: &RunState) -> Option<Progress> {
    let job = state.request()?.job;
    let spending = &state.spending;
    Some(Progress {
        job,
        phase: state.dialog().map(|dialog| dialog.phase),
        clone_percent: None,
        cost: spending
            .unpriced
            .is_none()
            .then(|| Dollars::from_micros(spending.cost)),
    })
}

/// Returns the first call of a conversation, if the status comment already shows the run. Later turns have
/// no news for it.
fn begun<'a>(action: &'a Action, state: &RunState) -> Option<&'a CallId> {
    let Action::AskModel { id } = action else {
        return None;
    };
    let first = state.dialog()?.turns.first()?;
    let is_announced = |request: &ReportRequest| matches!(request, ReportRequest::WorkStarted(_));
    (first.id == *id && state.last_report(is_announced).is_some()).then_some(id)
}

impl Driver {
    /// Shows the progress of the first clone in the status comment.
    pub(super) async fn show_clone(
        &self,
        state: &RunState,
        fence: RunFence,
        id: &CallId,
        percent: u8,
    ) -> Result<(), Trouble> {
        let progress = of(state).map(|progress| Progress {
            phase: None,
            clone_percent: Some(percent),
            ..progress
        });
        let report = Report {
            progress,
            ..Report::notice(
                ReportId::first_clone(id, percent),
                state.run.ticket().clone(),
                fence,
                bootstrap::now(),
                ReportRequest::Progressed(Progressed {}),
            )
        };
        Ok(self.queue.reports().append(&report).await.map(drop)?)
    }

    /// Shows the progress of the run in the status comment, if this action changes it.
    pub(super) async fn show_progress(
        &self,
        action: &Action,
        state: &RunState,
        fence: RunFence,
    ) -> Result<(), Trouble> {
        let Some(id) = begun(action, state) else {
            return Ok(());
        };
        let report = Report {
            progress: of(state),
            ..Report::notice(
                id.clone().into(),
                state.run.ticket().clone(),
                fence,
                bootstrap::now(),
                ReportRequest::Progressed(Progressed {}),
            )
        };
        Ok(self.queue.reports().append(&report).await.map(drop)?)
    }
}

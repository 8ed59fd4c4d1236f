//! What people see of a run while it works. None of it is in the journal: a report of it that is lost or comes twice
//! changes nothing.

use domain::{
    CallId, Dollars, Report, ReportId, ReportRequest, RunFence,
    report::{Progress, Progressed},
};

use super::{Driver, Trouble};
use crate::run::{Action, RunState};

/// How far a run is; absent for notices, which are no work.
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

/// The call that begins a conversation which the status comment should tell of: later turns say nothing new.
fn begun<'a>(action: &'a Action, state: &RunState) -> Option<&'a CallId> {
    let Action::AskModel { id } = action else {
        return None;
    };
    let first = state.dialog()?.turns.first()?;
    let is_announced = |request: &ReportRequest| matches!(request, ReportRequest::WorkStarted(_));
    (first.id == *id && state.last_report(is_announced).is_some()).then_some(id)
}

impl Driver {
    /// Has the status comment show how far the first clone is that the run waits for.
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

    /// Has the status comment show how far the run is, when this step changes that.
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

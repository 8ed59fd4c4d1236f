//! Calls to an executor about checks: search for candidates, check runs, and inspection of a change.

use std::time::Duration;

use domain::{
    CallId, ExecutorWorkspace,
    check::{ChangeReport, CheckCandidate, CheckSpec, CompletedCheck},
};
use proto::executor as wire;
use tokio::sync::mpsc;

use super::{
    call::{CallError, RunCaller},
    client::ExecutorFleet,
};

// A little longer than the executor's limit for a check, so that its own result arrives first.
const CHECK_LIMIT: Duration = Duration::from_secs(36 * 60);
// Reading the files of a large workspace takes time.
const LOOK_LIMIT: Duration = Duration::from_secs(120);

impl ExecutorFleet {
    /// Runs a check in a scratch tree and waits for its result. Its output goes to `output` meanwhile.
    ///
    /// # Errors
    /// [`CallError`]; the check may still be running. A call with the same id returns its result.
    pub(crate) async fn run_check(
        &self,
        caller: &RunCaller,
        info: &ExecutorWorkspace,
        id: &CallId,
        check: &CheckSpec,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<CompletedCheck, CallError> {
        let message = wire::RunCheckRequest {
            workspace_id: info.id.clone(),
            fence: Some(caller.fence.into()),
            call_id: id.to_string(),
            command: check.command.clone(),
            directory: check.directory.clone(),
            tree: Some((&check.tree).into()),
            limit_s: check.limit_s.unwrap_or_default(),
            reports: check.reports.clone(),
        };
        let _noted = self.note_call(&info.executor, caller);
        let request = self.request(caller, Some(&info.id), CHECK_LIMIT, message)?;
        let mut client = self.client(&info.executor)?;
        let called = client.run_check(request);
        let mut events = failpoint::around("planner.executor.run_check", called)
            .await?
            .into_inner();
        while let Some(event) = events.message().await? {
            match event.event {
                Some(wire::run_check_response::Event::Result(result)) => {
                    return result.of(check).map_err(|why| CallError::trouble(&why));
                }
                Some(wire::run_check_response::Event::Output(chunk)) => {
                    // A viewer misses chunks that arrive too fast; the result has the whole output.
                    let _ = output.try_send(chunk.data);
                }
                None => {}
            }
        }
        Err(CallError::trouble("the check ended without a result"))
    }

    /// Returns commands that may serve as checks at the base commit, `given` first.
    ///
    /// # Errors
    /// [`CallError`]
    pub(crate) async fn find_checks(
        &self,
        caller: &RunCaller,
        info: &ExecutorWorkspace,
        given: &[String],
    ) -> Result<Vec<CheckCandidate>, CallError> {
        let message = wire::FindChecksRequest {
            workspace_id: info.id.clone(),
            fence: Some(caller.fence.into()),
            commands: given.to_vec(),
        };
        let request = self.request(caller, Some(&info.id), LOOK_LIMIT, message)?;
        let mut client = self.client(&info.executor)?;
        let called = client.find_checks(request);
        let found = failpoint::around("planner.executor.find_checks", called)
            .await?
            .into_inner();
        Ok(found.candidates.into_iter().map(CheckCandidate::from).collect())
    }

    /// Inspects the workspace's change and the parts of it that weaken checks. `ticket_text`: wording of
    /// the ticket.
    ///
    /// # Errors
    /// [`CallError`]
    pub(crate) async fn inspect_change(
        &self,
        caller: &RunCaller,
        info: &ExecutorWorkspace,
        ticket_text: String,
    ) -> Result<ChangeReport, CallError> {
        let message = wire::InspectChangeRequest {
            workspace_id: info.id.clone(),
            fence: Some(caller.fence.into()),
            ticket_text,
        };
        let request = self.request(caller, Some(&info.id), LOOK_LIMIT, message)?;
        let mut client = self.client(&info.executor)?;
        let called = client.inspect_change(request);
        let report = failpoint::around("planner.executor.inspect_change", called)
            .await?
            .into_inner();
        report.try_into().map_err(|why: String| CallError::trouble(&why))
    }
}

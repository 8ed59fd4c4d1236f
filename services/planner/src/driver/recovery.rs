//! Recovery after a failed call to an executor.

use domain::{CallId, CommitId, Fact, ToolResult, WorkspaceSnapshot, cause::format_error_chain};

use super::{RunDriver, StepOutcome, TicketError};
use crate::executors::{
    CallError, OpenError, OpeningCommit, PlannerSnapshotRestore, RunCaller, WorkspaceCalls,
};
use crate::prompts;
use crate::run::PlannerRunState;

impl RunDriver {
    /// Recovers a failed call. The ticket may belong to another planner, the workspace may still be open,
    /// or any executor restores it from the last snapshot.
    pub(super) async fn recover(
        &self,
        caller: &RunCaller,
        state: &PlannerRunState,
        error: CallError,
        failed: FailedCall,
    ) -> Result<StepOutcome, TicketError> {
        // Only a newer fence and a broken queue end the session; every other failure becomes a fact of the
        // run.
        let is_gone = match error {
            CallError::Stale => return Err(TicketError::Lost),
            CallError::Invalid(words) | CallError::Refused(words) | CallError::Unkeepable(words) => {
                return Ok(workspace_failure(state, &words).into());
            }
            CallError::Store(error) => return Err(error.into()),
            CallError::WorkspaceLost => true,
            CallError::Trouble { .. } | CallError::TimedOut => false,
        };
        tracing::warn!(
            run = %caller.run,
            error = %format_error_chain(&error),
            "an executor call failed, opening the workspace again"
        );
        let before = state.source().open_workspace();
        // Before the workspace is opened, so that the pool does not choose the silent executor again.
        if let Some(before) = before.filter(|_| !is_gone)
            && self.executors.leave_if_silent(&before.executor).await
        {
            tracing::warn!(
                run = %caller.run,
                executor = before.executor,
                "the executor does not answer, another one continues from the last snapshot"
            );
        }
        let base = before.map(|info| info.base.clone());
        let (Some(request), snapshot) = (state.request(), state.source().work().snapshot.clone()) else {
            return Err(self.impossible(state, "no request"));
        };
        // A run without a snapshot restarts from the base.
        let restore = match snapshot.clone() {
            Some(snapshot) => {
                let pack = self.queue.objects().get(&snapshot.pack).await?;
                Some(PlannerSnapshotRestore { snapshot, pack })
            }
            None => None,
        };
        match self
            .slots
            .open(
                caller,
                request,
                OpeningCommit::pinned(base.as_ref()),
                restore.as_ref(),
                &mut None,
            )
            .await
        {
            // The workspace survived, so the call does not run again: its command may already have had
            // effects.
            Ok(workspace) if !is_gone && before.is_some_and(|before| before.id == workspace.id) => {
                Ok(fact_for_open_workspace(caller, &error, failed).into())
            }
            Ok(workspace) => Ok(StepOutcome::from(Fact::WorkspaceRestored {
                workspace,
                snapshot,
                repository: None,
            })),
            Err(error) => outcome_of_open_error(state.next_id(), error),
        }
    }
}

impl RunDriver {
    /// Reopens the workspace with an earlier state of the change.
    pub(super) async fn go_back(
        &self,
        workspace: WorkspaceCalls<'_>,
        state: &PlannerRunState,
        base: &CommitId,
        snapshot: WorkspaceSnapshot,
    ) -> Result<StepOutcome, TicketError> {
        let Some(request) = state.request() else {
            return Err(self.impossible(state, "no request"));
        };
        let pack = self.queue.objects().get(&snapshot.pack).await?;
        let restore = PlannerSnapshotRestore {
            snapshot: snapshot.clone(),
            pack,
        };
        // Frees the slot first; the pool may have no other.
        workspace.close().await;
        let base = OpeningCommit::pinned(Some(base));
        match self
            .slots
            .open(workspace.caller, request, base, Some(&restore), &mut None)
            .await
        {
            Ok(workspace) => Ok(Fact::WentBack { workspace, snapshot }.into()),
            Err(error) => outcome_of_open_error(state.next_id(), error),
        }
    }
}

/// Call to an executor that failed.
pub(super) enum FailedCall {
    Tool(CallId),
    Snapshot,
    /// A check or search request, with the fact to record if it has no answer.
    Check(Box<Fact>),
}

/// Fact for a failed call whose workspace is still open.
fn fact_for_open_workspace(caller: &RunCaller, error: &CallError, failed: FailedCall) -> Fact {
    match failed {
        FailedCall::Tool(id) => Fact::ToolFinished {
            id,
            result: ToolResult::interrupted(prompts::INTERRUPTED_CALL),
        },
        FailedCall::Check(fact) => *fact,
        FailedCall::Snapshot => record_failed_snapshot(caller, error.to_string()),
    }
}

pub(super) fn record_failed_snapshot(caller: &RunCaller, reason: String) -> Fact {
    tracing::warn!(run = %caller.run, reason, "a workspace's changes could not be kept");
    Fact::SnapshotFailed {
        reason,
        repository: None,
    }
}

pub(super) fn outcome_of_open_error(id: CallId, error: OpenError) -> Result<StepOutcome, TicketError> {
    let (detail, setup, permanent) = match error {
        OpenError::Stale => return Err(TicketError::Lost),
        OpenError::NoSlot => return Ok(StepOutcome::AwaitsSlot),
        OpenError::Queue(error) => return Err(error.into()),
        OpenError::Unavailable(detail) => (detail, false, false),
        not_ready @ OpenError::NotReady { .. } => (not_ready.to_string(), false, false),
        OpenError::Permanent(detail) => (detail, false, true),
        OpenError::Setup(detail) => (detail, true, false),
    };
    Ok(StepOutcome::from(Fact::WorkspaceFailed {
        id,
        detail,
        setup,
        permanent,
        repository: None,
    }))
}

pub(super) fn workspace_failure(state: &PlannerRunState, detail: &str) -> Fact {
    Fact::WorkspaceFailed {
        id: state.next_id(),
        detail: detail.to_owned(),
        setup: false,
        permanent: false,
        repository: None,
    }
}

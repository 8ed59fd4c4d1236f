//! What a failed call to an executor comes to.

use domain::{CallId, Fact, Snapshot, WorkspaceInfo, cause::chain};

use super::{Driver, Outcome, Trouble};
use crate::executors::{CallError, Caller, OpenError, Restore};
use crate::prompts;
use crate::run::RunState;

impl Driver {
    /// After a failed call: another planner has the ticket, the workspace is still there, or it is restored from the
    /// last snapshot at any executor.
    pub(super) async fn recover(
        &self,
        caller: &Caller,
        state: &RunState,
        error: CallError,
        cut: Cut,
    ) -> Result<Outcome, Trouble> {
        let is_gone = match error {
            CallError::Stale => return Err(Trouble::Lost),
            CallError::Invalid(words) | CallError::Refused(words) | CallError::Unkeepable(words) => {
                return Ok(failed(state, &words).into());
            }
            CallError::Store(error) => return Err(error.into()),
            CallError::WorkspaceLost => true,
            CallError::Trouble { .. } | CallError::TimedOut => false,
        };
        tracing::warn!(
            run = %caller.run,
            error = %chain(&error),
            "an executor call failed, opening the workspace again"
        );
        let before = state.open_workspace();
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
        let (Some(request), snapshot) = (state.request(), state.work().snapshot.clone()) else {
            return Err(self.impossible(state, "no request"));
        };
        let restore = match snapshot.clone() {
            Some(snapshot) => {
                let pack = self.queue.objects().get(&snapshot.pack).await?;
                Some(Restore { snapshot, pack })
            }
            None => None,
        };
        match self
            .slots
            .open(caller, request, base.as_ref(), restore.as_ref())
            .await
        {
            // Nothing was lost, so nothing is run again: a command may have had its effects already.
            Ok(workspace) if !is_gone && before.is_some_and(|before| before.id == workspace.id) => {
                Ok(still_open(caller, &error, cut).into())
            }
            Ok(workspace) => Ok(Outcome::from(Fact::WorkspaceRestored {
                workspace,
                snapshot,
                repository: None,
            })),
            Err(error) => workspace_failed(state.next_id(), error),
        }
    }
}

impl Driver {
    /// Opens the workspace anew with an earlier state of the change.
    pub(super) async fn go_back(
        &self,
        caller: &Caller,
        state: &RunState,
        info: &WorkspaceInfo,
        snapshot: Snapshot,
    ) -> Result<Outcome, Trouble> {
        let Some(request) = state.request() else {
            return Err(self.impossible(state, "no request"));
        };
        let pack = self.queue.objects().get(&snapshot.pack).await?;
        let restore = Restore {
            snapshot: snapshot.clone(),
            pack,
        };
        self.executors.close(caller, &info.executor, &info.id).await;
        let opened = self.slots.open(caller, request, Some(&info.base), Some(&restore));
        match opened.await {
            Ok(workspace) => Ok(Fact::WentBack { workspace, snapshot }.into()),
            Err(error) => workspace_failed(state.next_id(), error),
        }
    }
}

/// Which call to an executor failed.
pub(super) enum Cut {
    Tool(CallId),
    Snapshot,
    /// A question about checks, and what it comes to without an answer.
    Check(Box<Fact>),
}

/// What a failed call comes to when its workspace is still there.
fn still_open(caller: &Caller, error: &CallError, cut: Cut) -> Fact {
    match cut {
        Cut::Tool(id) => Fact::ToolFinished {
            id,
            result: prompts::interrupted(prompts::CUT_CALL),
        },
        Cut::Check(fact) => *fact,
        Cut::Snapshot => unkept(caller, error.to_string()),
    }
}

pub(super) fn unkept(caller: &Caller, reason: String) -> Fact {
    tracing::warn!(run = %caller.run, reason, "a workspace's changes could not be kept");
    Fact::SnapshotFailed {
        reason,
        repository: None,
    }
}

pub(super) fn workspace_failed(id: CallId, error: OpenError) -> Result<Outcome, Trouble> {
    let (detail, setup, permanent) = match error {
        OpenError::Stale => return Err(Trouble::Lost),
        OpenError::NoSlot => return Ok(Outcome::AwaitsSlot),
        OpenError::Queue(error) => return Err(error.into()),
        OpenError::Unavailable(detail) => (detail, false, false),
        not_ready @ OpenError::NotReady { .. } => (not_ready.to_string(), false, false),
        OpenError::Permanent(detail) => (detail, false, true),
        OpenError::Setup(detail) => (detail, true, false),
    };
    Ok(Outcome::from(Fact::WorkspaceFailed {
        id,
        detail,
        setup,
        permanent,
        repository: None,
    }))
}

pub(super) fn failed(state: &RunState, detail: &str) -> Fact {
    Fact::WorkspaceFailed {
        id: state.next_id(),
        detail: detail.to_owned(),
        setup: false,
        permanent: false,
        repository: None,
    }
}

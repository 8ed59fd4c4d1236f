//! The run's workspace: asked for, open, lost and opened again, and what is kept of it.

use domain::{CallId, Snapshot, ToolResult, ToolStatus, WorkspaceInfo};

use super::apply::{Applied, legal};
use super::state::{Call, CallState, RunState, Workspace};
use crate::prompts;

/// A call is not run again once its workspace was lost this often while it ran.
const MOST_LOSSES: u32 = 2;

impl Call {
    /// Whether it probably costs every workspace that it runs in.
    pub(super) const fn is_deadly(&self) -> bool {
        self.losses >= MOST_LOSSES
    }
}

impl RunState {
    pub(super) fn workspace_requested(&mut self, id: &CallId) -> Applied {
        legal(
            matches!(self.workspace, Workspace::Absent),
            "a workspace was asked for already",
        )?;
        legal(self.request().is_some(), "the run needs no workspace")?;
        self.workspace = Workspace::Requested(id.clone());
        Ok(())
    }

    pub(super) fn workspace_opened(&mut self, id: &CallId, info: &WorkspaceInfo) -> Applied {
        legal(
            matches!(&self.workspace, Workspace::Requested(asked) if asked == id),
            "this workspace was not asked for",
        )?;
        self.workspace = Workspace::Open(Box::new(info.clone()));
        Ok(())
    }

    pub(super) fn restored(&mut self, info: &WorkspaceInfo, snapshot: Option<&Snapshot>) -> Applied {
        legal(self.open_workspace().is_some(), "there was no workspace to lose")?;
        legal(snapshot == self.snapshot.as_ref(), "it is not the last snapshot")?;
        let since = self.snapshot_position;
        for call in self.turns.last_mut().into_iter().flat_map(|turn| &mut turn.calls) {
            let ours = call.report.is_some() || call.gate.is_some();
            let void = match &call.state {
                CallState::Finished { position, .. } => *position > since,
                CallState::Running { .. } => true,
                CallState::Waiting => false,
            };
            if matches!(call.state, CallState::Running { .. }) {
                call.losses += 1;
            }
            if void && !ours {
                call.state = CallState::Waiting;
            }
        }
        self.dirty = false;
        self.unkept = None;
        self.branch = snapshot.and_then(|snapshot| snapshot.branch.clone());
        self.head = snapshot.and_then(|snapshot| snapshot.head.clone());
        self.workspace = Workspace::Open(Box::new(info.clone()));
        Ok(())
    }

    pub(super) fn workspace_failed(&mut self, detail: &str, setup: bool) {
        let lost = match std::mem::replace(&mut self.workspace, Workspace::Absent) {
            Workspace::Open(info) => Some(info),
            Workspace::Absent | Workspace::Requested(_) | Workspace::Failed { .. } => None,
        };
        self.workspace = Workspace::Failed {
            detail: detail.to_owned(),
            setup,
            lost,
        };
    }

    pub(super) fn finish_call(&mut self, result: ToolResult, position: u64) {
        let moved = (result.branch.is_some() && result.branch != self.branch)
            || (result.head.is_some() && result.head != self.head);
        self.dirty |= moved || result.changed || result.status == ToolStatus::Interrupted;
        if result.branch.is_some() {
            self.branch.clone_from(&result.branch);
        }
        if result.head.is_some() {
            self.head.clone_from(&result.head);
        }
        if let Some(call) = self.open_call_mut() {
            call.state = CallState::Finished { result, position };
            if call.gate.is_some() {
                // What a person decided was about this call's commit.
                self.decision = None;
            }
        }
    }

    pub(super) fn snapshot_taken(&mut self, snapshot: &Snapshot, position: u64) -> Applied {
        legal(self.open_workspace().is_some(), "there is no workspace")?;
        self.snapshot = Some(snapshot.clone());
        self.snapshot_position = position;
        self.branch.clone_from(&snapshot.branch);
        self.head.clone_from(&snapshot.head);
        self.dirty = false;
        self.unkept = None;
        Ok(())
    }

    /// The model hears it with the results of its calls; only a further change is a reason to try again.
    pub(super) fn snapshot_failed(&mut self, reason: &str) -> Applied {
        legal(self.open_workspace().is_some(), "there is no workspace")?;
        if let Some(turn) = self.turns.last_mut() {
            turn.notice = Some(prompts::unkept(reason));
        }
        self.unkept = Some(reason.to_owned());
        self.dirty = false;
        Ok(())
    }

    /// What of the work is not in the last snapshot, for the ticket.
    pub(super) fn lacking(&self) -> Option<String> {
        if let Some(reason) = &self.unkept {
            return Some(format!("The last changes could not be saved: {reason}."));
        }
        let omitted = &self.snapshot.as_ref()?.omitted;
        (!omitted.is_empty()).then(|| format!("Not saved: {}.", omitted.join("; ")))
    }
}

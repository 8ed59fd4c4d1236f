//! Work of a run in one repository: its workspace, its snapshot and its pushed commits.

use std::sync::LazyLock;

use domain::{
    CallId, CommitId, ExecutorWorkspace, PullRequestRef, ToolResult, ToolStatus, WorkspaceSnapshot,
};

use super::{ApplyResult, require_legal};

/// Tool with which the planner and the model commit.
pub(in crate::run) const COMMIT_CHANGES: &str = "commit_changes";

/// Work of a run in one repository.
#[derive(Clone, Debug, Default)]
pub(crate) struct RepositoryWork {
    pub(crate) workspace: PlannerWorkspaceState,
    pub(crate) snapshot: Option<WorkspaceSnapshot>,
    /// Journal position of the last snapshot.
    pub(crate) snapshot_position: u64,
    /// True if the workspace may differ from the last snapshot.
    pub(crate) dirty: bool,
    /// Reason that the last attempt to store the workspace failed.
    pub(crate) unkept: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) head: Option<CommitId>,
    /// Last commit that the planner made.
    pub(super) committed: Option<CommitId>,
    /// Branch and head on the remote.
    pub(crate) pushed: Option<(String, CommitId)>,
    /// Commit of the workspace that the remote head is; the reporter may have signed it under another id.
    pub(super) pushed_from: Option<CommitId>,
    pub(crate) pull_request: Option<PullRequestRef>,
}

/// Checkout at an executor, and its progress.
#[derive(Clone, Debug, Default)]
pub(crate) enum PlannerWorkspaceState {
    #[default]
    Absent,
    Requested(CallId),
    Open(Box<ExecutorWorkspace>),
    Failed {
        detail: String,
        setup: bool,
        /// True if every attempt fails in the same way.
        permanent: bool,
        /// Lost workspace, if there was one: a retry restores it.
        lost: Option<Box<ExecutorWorkspace>>,
    },
}

/// Work in a repository that the run has not touched.
pub(super) static UNTOUCHED: LazyLock<RepositoryWork> = LazyLock::new(RepositoryWork::default);

impl RepositoryWork {
    pub(crate) fn open_workspace(&self) -> Option<&ExecutorWorkspace> {
        match &self.workspace {
            PlannerWorkspaceState::Open(info) => Some(info),
            PlannerWorkspaceState::Absent
            | PlannerWorkspaceState::Requested(_)
            | PlannerWorkspaceState::Failed { .. } => None,
        }
    }

    /// Returns true if a workspace is requested and not open yet.
    pub(super) const fn has_open_request(&self) -> bool {
        matches!(self.workspace, PlannerWorkspaceState::Requested(_))
    }

    /// Notes a commit of the planner.
    pub(super) fn note_commit(&mut self, result: &ToolResult) {
        self.committed.clone_from(&result.head);
    }

    /// Returns true if the head on the remote is this commit of the workspace, as it is or signed.
    pub(crate) fn is_pushed(&self, commit: &CommitId) -> bool {
        let there = self.pushed.as_ref().map(|(_, head)| head);
        there == Some(commit) || self.pushed_from.as_ref() == Some(commit)
    }

    /// Records a push: the head on the remote, and the commit of the workspace that it is.
    pub(super) fn note_push(&mut self, branch: &str, head: &CommitId, from: Option<&CommitId>) {
        self.pushed = Some((branch.to_owned(), head.clone()));
        self.pushed_from = from.cloned();
    }

    /// Returns true if the head is an unpushed commit of the planner.
    ///
    /// A corrected commit replaces it, because the reporter checks every commit of the branch: a file stays
    /// in the history after a later commit removes it.
    pub(crate) fn may_replace_head(&self) -> bool {
        let head = self.head.as_ref();
        head.is_some_and(|head| self.committed.as_ref() == Some(head) && !self.is_pushed(head))
    }

    pub(super) fn requested(&mut self, id: &CallId) -> ApplyResult {
        let is_absent = matches!(self.workspace, PlannerWorkspaceState::Absent);
        require_legal(is_absent, "a workspace was asked for already")?;
        self.workspace = PlannerWorkspaceState::Requested(id.clone());
        Ok(())
    }

    pub(super) fn opened(&mut self, id: &CallId, info: &ExecutorWorkspace) -> ApplyResult {
        let is_asked_for = matches!(&self.workspace, PlannerWorkspaceState::Requested(asked) if asked == id);
        require_legal(is_asked_for, "this workspace was not asked for")?;
        self.workspace = PlannerWorkspaceState::Open(Box::new(info.clone()));
        Ok(())
    }

    /// Resets the work to its last snapshot.
    pub(super) fn restored(
        &mut self,
        info: &ExecutorWorkspace,
        snapshot: Option<&WorkspaceSnapshot>,
    ) -> ApplyResult {
        require_legal(self.open_workspace().is_some(), "there was no workspace to lose")?;
        require_legal(snapshot == self.snapshot.as_ref(), "it is not the last snapshot")?;
        self.dirty = false;
        self.unkept = None;
        self.branch = snapshot.and_then(|snapshot| snapshot.branch.clone());
        self.head = snapshot.and_then(|snapshot| snapshot.head.clone());
        self.workspace = PlannerWorkspaceState::Open(Box::new(info.clone()));
        Ok(())
    }

    /// Resets the work to an earlier snapshot.
    pub(super) fn went_back(
        &mut self,
        info: &ExecutorWorkspace,
        snapshot: &WorkspaceSnapshot,
        position: u64,
    ) {
        self.workspace = PlannerWorkspaceState::Open(Box::new(info.clone()));
        self.keep_snapshot(snapshot, position);
    }

    pub(super) fn failed(&mut self, detail: &str, setup: bool, permanent: bool) {
        let lost = match std::mem::take(&mut self.workspace) {
            PlannerWorkspaceState::Open(info) => Some(info),
            PlannerWorkspaceState::Absent
            | PlannerWorkspaceState::Requested(_)
            | PlannerWorkspaceState::Failed { .. } => None,
        };
        self.workspace = PlannerWorkspaceState::Failed {
            detail: detail.to_owned(),
            setup,
            permanent,
            lost,
        };
    }

    /// Requests a failed workspace again; reopens a lost one.
    pub(super) fn retried(&mut self) {
        if let PlannerWorkspaceState::Failed { lost, .. } = &mut self.workspace {
            self.workspace = lost
                .take()
                .map_or(PlannerWorkspaceState::Absent, PlannerWorkspaceState::Open);
        }
    }

    /// Updates branch and files from a tool's result.
    pub(super) fn changed_by(&mut self, result: &ToolResult) {
        // A new branch or commit counts as a change: the snapshot stores both.
        let moved = (result.branch.is_some() && result.branch != self.branch)
            || (result.head.is_some() && result.head != self.head);
        // An interrupted tool may have changed files before it ended.
        self.dirty |= moved || result.changed || result.status == ToolStatus::Interrupted;
        if result.branch.is_some() {
            self.branch.clone_from(&result.branch);
        }
        if result.head.is_some() {
            self.head.clone_from(&result.head);
        }
    }

    pub(super) fn snapshot_taken(&mut self, snapshot: &WorkspaceSnapshot, position: u64) -> ApplyResult {
        require_legal(self.open_workspace().is_some(), "there is no workspace")?;
        self.keep_snapshot(snapshot, position);
        Ok(())
    }

    fn keep_snapshot(&mut self, snapshot: &WorkspaceSnapshot, position: u64) {
        self.snapshot = Some(snapshot.clone());
        self.snapshot_position = position;
        self.branch.clone_from(&snapshot.branch);
        self.head.clone_from(&snapshot.head);
        self.dirty = false;
        self.unkept = None;
    }

    /// Records a failed snapshot. Only a further change justifies another attempt.
    pub(super) fn snapshot_failed(&mut self, reason: &str) -> ApplyResult {
        require_legal(self.open_workspace().is_some(), "there is no workspace")?;
        self.unkept = Some(reason.to_owned());
        self.dirty = false;
        Ok(())
    }

    /// Returns the parts of the work that the last snapshot lacks.
    pub(crate) fn unsaved(&self) -> Vec<String> {
        match (&self.unkept, &self.snapshot) {
            (Some(reason), _) => vec![reason.clone()],
            (None, Some(kept)) => kept.omitted.clone(),
            (None, None) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_commit_id(digit: &str) -> CommitId {
        digit.repeat(40).parse().unwrap()
    }

    #[test]
    fn planner_replaces_only_its_unpushed_commit() {
        let result = ToolResult {
            head: Some(build_commit_id("1")),
            ..ToolResult::ok(String::new())
        };
        let mut work = RepositoryWork::default();
        assert!(!work.may_replace_head(), "there is no commit");
        work.changed_by(&result);
        assert!(!work.may_replace_head(), "the model made it");
        work.note_commit(&result);
        assert!(work.may_replace_head());
        work.pushed = Some(("fix/tax".to_owned(), build_commit_id("1")));
        assert!(!work.may_replace_head(), "the remote has it");
        work.head = Some(build_commit_id("2"));
        assert!(!work.may_replace_head(), "the model went on from it");
    }

    #[test]
    fn signed_commit_counts_as_pushed() {
        let (local, remote) = (build_commit_id("1"), build_commit_id("9"));
        let result = ToolResult {
            head: Some(local.clone()),
            ..ToolResult::ok(String::new())
        };
        let mut work = RepositoryWork::default();
        work.changed_by(&result);
        work.note_commit(&result);
        work.note_push("fix/tax", &remote, Some(&local));
        assert!(work.is_pushed(&local) && work.is_pushed(&remote));
        assert!(!work.may_replace_head(), "the remote has it under another id");
        let next = build_commit_id("2");
        work.note_push("fix/tax", &next, Some(&next));
        assert!(!work.is_pushed(&local));
    }
}

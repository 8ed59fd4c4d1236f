//! Branch of a workspace, and the states of its files before the latest changes.

use std::mem;

use domain::CommitId;
use git2::Oid;
use parking_lot::Mutex;

use super::change_size::UnstoredFiles;

/// Limit of recorded undo steps.
const MAX_UNDO: usize = 50;

/// Tree of all files, with the branch and its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WorkState {
    pub(super) tree: Oid,
    pub(super) branch: Option<String>,
    pub(super) head: Option<CommitId>,
}

impl WorkState {
    /// Returns true when an undo to this state has an effect: the files differ, or the head of the same
    /// branch.
    fn is_undoable(&self, now: &Self) -> bool {
        self.tree != now.tree || (self.branch == now.branch && self.head != now.head)
    }
}

/// Branch and head of a workspace, with the states that an undo can restore.
#[derive(Default)]
pub(crate) struct WorkHistory(Mutex<HistoryState>);

#[derive(Default)]
struct HistoryState {
    branch: Option<String>,
    head: Option<CommitId>,
    /// State after the last scan, for the detection of changes.
    seen: Option<WorkState>,
    /// Files that the last scan did not store.
    seen_excess: UnstoredFiles,
    /// States before the latest changes, the newest last.
    steps: Vec<WorkState>,
    /// True when the next change is an undo, which is not recorded as a step.
    is_undone: bool,
}

/// States whose objects are needed.
pub(super) struct NeededStates {
    pub(super) head: Option<CommitId>,
    pub(super) seen: Option<WorkState>,
    /// States before the latest changes, the newest last.
    pub(super) steps: Vec<WorkState>,
}

impl WorkHistory {
    /// Returns the branch and its head, if a branch was created.
    pub(crate) fn branch(&self) -> (Option<String>, Option<CommitId>) {
        let state = self.0.lock();
        (state.branch.clone(), state.head.clone())
    }

    /// Returns the head; `None` at the base commit.
    pub(super) fn head(&self) -> Option<CommitId> {
        self.0.lock().head.clone()
    }

    pub(super) fn set_branch(&self, branch: Option<String>, head: Option<CommitId>) {
        let mut state = self.0.lock();
        state.branch = branch;
        state.head = head;
    }

    pub(super) fn set_head(&self, head: Option<CommitId>) {
        self.0.lock().head = head;
    }

    /// Records the first tree of the files.
    pub(super) fn begin(&self, tree: Oid) {
        let mut state = self.0.lock();
        state.seen = Some(state.now(tree));
    }

    /// Records a scan, and the state before it as an undo step. Returns true when something changed since the
    /// last scan.
    pub(super) fn note(&self, tree: Oid, unstored: UnstoredFiles) -> bool {
        let mut state = self.0.lock();
        let now = state.now(tree);
        let changed = state.seen.as_ref() != Some(&now) || state.seen_excess != unstored;
        state.seen_excess = unstored;
        let is_undone = mem::take(&mut state.is_undone);
        let before = state.seen.replace(now.clone());
        if let Some(before) = before.filter(|before| !is_undone && before.is_undoable(&now)) {
            // The oldest steps are dropped at the limit.
            let excess = (state.steps.len() + 1).saturating_sub(MAX_UNDO);
            state.steps.drain(..excess);
            state.steps.push(before);
        }
        changed
    }

    /// Tree of the files at the last scan.
    pub(super) fn tree(&self) -> Option<Oid> {
        self.0.lock().seen.as_ref().map(|seen| seen.tree)
    }

    /// Name of the tree at the last scan.
    pub(crate) fn tree_name(&self) -> Option<String> {
        self.tree().map(|tree| tree.to_string())
    }

    /// Takes the state before the latest change.
    pub(super) fn take_step(&self) -> Option<WorkState> {
        self.0.lock().steps.pop()
    }

    /// Makes the next scan record no step.
    pub(super) fn mark_undone(&self) {
        self.0.lock().is_undone = true;
    }

    /// Drops all steps, so that nothing before can be undone.
    pub(super) fn clear_steps(&self) {
        self.0.lock().steps.clear();
    }

    /// Returns the states whose objects are needed.
    pub(super) fn needed(&self) -> NeededStates {
        let state = self.0.lock();
        NeededStates {
            head: state.head.clone(),
            seen: state.seen.clone(),
            steps: state.steps.clone(),
        }
    }

    /// Drops the oldest steps beyond a limit, and returns their number.
    pub(super) fn keep_steps(&self, most: usize) -> usize {
        let mut state = self.0.lock();
        let dropped = state.steps.len().saturating_sub(most);
        state.steps.drain(..dropped);
        dropped
    }
}

impl HistoryState {
    fn now(&self, tree: Oid) -> WorkState {
        WorkState {
            tree,
            branch: self.branch.clone(),
            head: self.head.clone(),
        }
    }
}

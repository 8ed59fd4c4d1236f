//! Heads that callers request of a mirror during its first fetch in steps.

use std::{collections::BTreeSet, path::Path};

use domain::CommitId;
use git::{BareRepository, FetchProgress, GitTransport};
use tokio::{sync::watch, task::AbortHandle};

// Branches that are fetched before the history at the request of callers. Further ones wait.
const MOST_EARLY: usize = 64;

/// Branch or commit that a caller of the gate requests; both absent if it does not name them. With both, the
/// branch at the commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WantedHead {
    /// Name of the branch.
    pub(crate) branch: Option<String>,
    /// Id of the commit.
    pub(crate) commit: Option<CommitId>,
}

impl WantedHead {
    /// A commit on any branch.
    pub(crate) fn commit(commit: &CommitId) -> Self {
        Self {
            branch: None,
            commit: Some(commit.clone()),
        }
    }

    /// Returns true if a mirror contains the branch and commit, or if neither is named.
    pub(super) fn is_in(&self, mirror: &BareRepository) -> Result<bool, git::Error> {
        let has_commit = self.commit.as_ref().is_none_or(|commit| mirror.contains(commit));
        let Some(branch) = &self.branch else {
            return Ok(has_commit);
        };
        let head = mirror.branch_head(branch)?;
        let is_there = head.is_some() && (self.commit.is_none() || head == self.commit);
        Ok(has_commit && is_there)
    }

    /// Returns true if the history between this head and one of the base branches is complete.
    pub(super) fn has_history(&self, mirror: &BareRepository, bases: &[String]) -> Result<bool, git::Error> {
        let head = match (&self.commit, &self.branch) {
            (Some(commit), _) => Some(commit.clone()),
            (None, Some(branch)) => mirror.branch_head(branch)?,
            (None, None) => return Ok(true),
        };
        let Some(head) = head else { return Ok(false) };
        for base in bases {
            let Some(base) = mirror.branch_head(base)? else {
                continue;
            };
            match mirror.merge_base(&base, &head) {
                Ok(_) => return Ok(true),
                Err(git::Error::HistoryIncomplete) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

/// State of a fetch in steps in this process.
#[derive(Debug, Default)]
pub(super) struct StepNote {
    /// Branches that callers requested before the history. Each fetch brings their heads.
    branches: BTreeSet<String>,
    /// Commits that callers requested.
    commits: BTreeSet<CommitId>,
    background: Option<BackgroundSteps>,
}

/// Task that performs the steps.
#[derive(Debug)]
struct BackgroundSteps {
    task: AbortHandle,
    progress: watch::Receiver<FetchProgress>,
}

impl StepNote {
    /// Registers a head for the next fetch. Returns true if no fetch brings it yet.
    pub(super) fn want(&mut self, head: &WantedHead) -> bool {
        match (&head.branch, &head.commit) {
            (Some(branch), _) => {
                let is_full = self.branches.len() >= MOST_EARLY;
                !is_full && self.branches.insert(branch.clone())
            }
            (None, Some(commit)) => {
                let is_full = self.commits.len() >= MOST_EARLY;
                !is_full && self.commits.insert(commit.clone())
            }
            (None, None) => false,
        }
    }

    /// Returns the progress of the step in the background, in percent.
    pub(super) fn percent(&self) -> Option<u8> {
        self.background.as_ref()?.progress.borrow().percent
    }

    /// Returns true while a task performs the steps.
    pub(super) fn is_running(&self) -> bool {
        self.background
            .as_ref()
            .is_some_and(|steps| !steps.task.is_finished())
    }

    /// Records the task that performs the steps.
    pub(super) fn start(&mut self, task: AbortHandle, progress: watch::Receiver<FetchProgress>) {
        self.background = Some(BackgroundSteps { task, progress });
    }

    /// Forgets the requested branches, because the mirror has all of them.
    pub(super) fn finish(&mut self) {
        self.branches.clear();
    }

    /// Returns the requested branches, and takes the requested commits.
    pub(super) fn take_wanted(&mut self) -> (BTreeSet<String>, BTreeSet<CommitId>) {
        (self.branches.clone(), std::mem::take(&mut self.commits))
    }
}

/// Returns true if the first fetch of a mirror is in steps and not finished.
pub(super) fn is_in_steps(mirror: &Path) -> bool {
    GitTransport::new(mirror).is_in_steps()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_heads_are_bounded() {
        let mut note = StepNote::default();
        let branch = |number: usize| WantedHead {
            branch: Some(format!("fix/{number}")),
            commit: None,
        };
        assert!(note.want(&branch(0)));
        assert!(!note.want(&branch(0)), "a fetch brings it already");
        for number in 1..MOST_EARLY {
            assert!(note.want(&branch(number)));
        }
        assert!(!note.want(&branch(MOST_EARLY)));
        assert!(!note.want(&WantedHead::default()));
        let commit: CommitId = "1".repeat(40).parse().unwrap();
        assert!(note.want(&WantedHead::commit(&commit)));
        let (branches, commits) = note.take_wanted();
        assert_eq!((branches.len(), commits.len()), (MOST_EARLY, 1));
        // Branches stay, because they can move; a commit does not.
        let (branches, commits) = note.take_wanted();
        assert_eq!((branches.len(), commits.len()), (MOST_EARLY, 0));
    }
}

//! Random faults of the GitHub stand-in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::hub::GitHubState;
use super::state::CheckRunRecord;
use super::{FakeGitHub, RunConclusion, WRITER_LOGIN, repository};
use crate::chaos::EarlyChecks;

/// Lock of a branch. Dropping it unlocks the branch.
#[derive(Debug)]
pub struct BranchLock(PathBuf);

impl Drop for BranchLock {
    fn drop(&mut self) {
        // A missing file unlocks the branch, too.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl FakeGitHub {
    /// Locks a branch as a push that has not ended does: git refuses every other push of it.
    ///
    /// # Errors
    /// When the repository does not exist, or the lock cannot be created.
    pub fn lock_branch(&self, repository: &str, branch: &str) -> anyhow::Result<BranchLock> {
        let path = self.hub.world().repo(repository)?.path.clone();
        let lock = path.join(format!("refs/heads/{branch}.lock"));
        if let Some(folder) = lock.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::File::create_new(&lock)?;
        Ok(BranchLock(lock))
    }

    /// Completes the checks of some branches before their push is answered; `None` ends it.
    pub fn set_early_checks(&self, early: Option<EarlyChecks>) {
        *self.hub.early.lock() = early;
    }

    /// True if CI has checked the commit.
    #[must_use]
    pub fn is_checked(&self, repository: &str, sha: &str) -> bool {
        let world = self.hub.world();
        let repo = world.repos.get(repository);
        // The check run of our own App reports on the run and is not a CI result.
        let is_check = |check: &CheckRunRecord| check.sha == sha && check.app != WRITER_LOGIN;
        repo.is_some_and(|repo| repo.checks.iter().any(is_check))
    }
}

impl GitHubState {
    /// Completes the checks of moved branches that the seed selects. Returns the delay of the push's answer.
    pub(super) fn check_early(
        &self,
        name: &str,
        before: &BTreeMap<String, String>,
    ) -> anyhow::Result<Duration> {
        let Some(early) = self.early.lock().clone() else {
            return Ok(Duration::ZERO);
        };
        // The lock is released here, because `run_checks` takes it again.
        let path = self.world().repo(name)?.path.clone();
        let after = repository::list_branches(&path);
        let moved = after
            .iter()
            .filter(|(branch, sha)| before.get(*branch) != Some(sha) && early.strikes(branch));
        let mut hold = Duration::ZERO;
        for (_, sha) in moved {
            self.run_checks(name, sha, &[("test", RunConclusion::Success, "early")])?;
            hold = early.hold;
        }
        Ok(hold)
    }
}

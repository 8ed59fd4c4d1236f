//! Types of GitHub Actions runs, and the marks of our check run.

use domain::CommitId;

/// Id of the GitHub Actions run in the URL of a check; `None` for checks of other systems.
pub fn parse_run_id(url: &str) -> Option<u64> {
    let (run, _) = url.split_once("/actions/runs/")?.1.split_once("/job/")?;
    run.parse().ok()
}

/// Workflow run of GitHub Actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowRun {
    /// Commit that the run checks.
    pub head: CommitId,
    /// Number of the attempt, from 1. Each rerun of jobs increments it.
    pub attempt: u32,
    /// True when all its jobs have ended.
    pub is_complete: bool,
}

/// Progress of a GitHub Actions run for a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowRunProgress {
    /// A maintainer has to approve the run first; until then it creates no check run.
    AwaitsApproval,
    /// The run is queued or running.
    UnderWay,
    /// The run has ended with any result.
    Ended,
}

/// GitHub Actions run for a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRun {
    /// Name of its workflow.
    pub name: String,
    /// Link to its page.
    pub url: String,
    /// Progress of the run.
    pub progress: WorkflowRunProgress,
}

// Name of our check run. Decisions about a pull request ignore this check run.
pub(crate) const CHECK_NAME: &str = "Journeyman";

// Prefix of its `external_id`: another App may give its check run the same name.
pub(crate) const OURS: &str = "journeyman:";

/// True when a check run is the one that Journeyman creates.
pub fn is_our_check_run(name: &str, external_id: Option<&str>) -> bool {
    name == CHECK_NAME && external_id.is_some_and(|id| id.starts_with(OURS))
}

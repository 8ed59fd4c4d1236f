//! Runs of GitHub Actions.

use domain::CommitId;

/// The run of GitHub Actions that the page of a check belongs to; `None` for checks of other systems.
pub fn actions_run(url: &str) -> Option<u64> {
    let (run, _) = url.split_once("/actions/runs/")?.1.split_once("/job/")?;
    run.parse().ok()
}

/// A run of GitHub Actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowRun {
    /// The commit that it checks.
    pub head: CommitId,
    /// Which attempt it is at, from 1; each time that jobs run again is one more.
    pub attempt: u32,
    /// Whether all its jobs have ended.
    pub is_complete: bool,
}

/// How far a run of GitHub Actions for a commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunProgress {
    /// A person has to approve it first; until then it makes no check run.
    AwaitsApproval,
    /// It is queued or runs.
    UnderWay,
    /// It has ended, in whatever way.
    Ended,
}

/// A run of GitHub Actions for a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRun {
    /// The name of its workflow.
    pub name: String,
    /// Its page.
    pub url: String,
    /// How far it is.
    pub progress: RunProgress,
}

/// The name of our check run; it is no part of what decides about a pull request.
pub(crate) const CHECK_NAME: &str = "Journeyman";

/// How its `external_id` begins: another App may give its check run the same name.
pub(crate) const OURS: &str = "journeyman:";

/// Whether a check run is the one that we make.
pub fn is_our_check_run(name: &str, external_id: Option<&str>) -> bool {
    name == CHECK_NAME && external_id.is_some_and(|id| id.starts_with(OURS))
}

//! Runs of GitHub Actions.

use domain::CommitId;
use serde::Deserialize;

use crate::WorkflowRun;

#[derive(Deserialize)]
pub(crate) struct WireWorkflowRun {
    head_sha: CommitId,
    status: Option<String>,
    #[serde(default = "first")]
    run_attempt: u32,
}

const fn first() -> u32 {
    1
}

impl From<WireWorkflowRun> for WorkflowRun {
    fn from(wire: WireWorkflowRun) -> Self {
        Self {
            head: wire.head_sha,
            attempt: wire.run_attempt,
            is_complete: wire.status.as_deref() == Some("completed"),
        }
    }
}

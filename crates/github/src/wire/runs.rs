//! JSON of GitHub Actions runs.

use domain::CommitId;
use serde::Deserialize;

use crate::{CommitRun, WorkflowRun, WorkflowRunProgress};

#[derive(Deserialize)]
pub(crate) struct WireWorkflowRun {
    head_sha: CommitId,
    status: Option<String>,
    #[serde(default = "first_attempt")]
    run_attempt: u32,
}

#[derive(Deserialize)]
pub(crate) struct WireCommitRuns {
    pub(crate) workflow_runs: Vec<WireCommitRun>,
}

#[derive(Deserialize)]
pub(crate) struct WireCommitRun {
    name: Option<String>,
    html_url: Option<String>,
    status: Option<String>,
    conclusion: Option<String>,
}

impl From<WireCommitRun> for CommitRun {
    fn from(wire: WireCommitRun) -> Self {
        let progress = match (wire.status.as_deref(), wire.conclusion.as_deref()) {
            // A first-time contributor's run is `completed` with this conclusion; a run that waits for an
            // environment is `waiting`.
            (Some("action_required" | "waiting"), _) | (_, Some("action_required")) => {
                WorkflowRunProgress::AwaitsApproval
            }
            (Some("completed"), _) => WorkflowRunProgress::Ended,
            _ => WorkflowRunProgress::UnderWay,
        };
        Self {
            name: wire.name.unwrap_or_default(),
            url: wire.html_url.unwrap_or_default(),
            progress,
        }
    }
}

const fn first_attempt() -> u32 {
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

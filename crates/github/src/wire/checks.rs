//! JSON of check runs, commit statuses and GitHub Actions runs.

use domain::{CommitId, text::take_tail_bytes};
use serde::Deserialize;

use super::parse_instant;
use crate::{
    CheckConclusion, CheckKind, CheckStatus, CommitCheck, CommitRun, WorkflowRun, WorkflowRunProgress,
    is_ci_check_run, model::is_our_check_run,
};

const OUTPUT_TAIL_BYTES: usize = 8 * 1024;

#[derive(Deserialize)]
pub(crate) struct WireCheckRuns {
    pub(crate) check_runs: Vec<WireCheckRun>,
}

#[derive(Deserialize)]
pub(crate) struct WireCheckRun {
    pub(crate) id: u64,
    name: String,
    #[serde(default)]
    external_id: Option<String>,
    status: String,
    conclusion: Option<String>,
    completed_at: Option<String>,
    html_url: Option<String>,
    details_url: Option<String>,
    check_suite: Option<WireSuite>,
    output: Option<WireOutput>,
}

#[derive(Deserialize)]
struct WireSuite {
    id: u64,
}

#[derive(Deserialize)]
struct WireOutput {
    title: Option<String>,
    summary: Option<String>,
    text: Option<String>,
}

impl WireOutput {
    fn tail(self) -> String {
        let parts = [self.title, self.summary, self.text];
        let whole = parts
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("\n");
        take_tail_bytes(&whole, OUTPUT_TAIL_BYTES).to_owned()
    }
}

impl WireCheckRun {
    /// True for the check run that Journeyman creates.
    pub(crate) fn is_ours(&self) -> bool {
        is_our_check_run(&self.name, self.external_id.as_deref())
    }

    /// True for a check of the repository's CI.
    pub(crate) fn is_of_ci(&self) -> bool {
        is_ci_check_run(&self.name, self.external_id.as_deref())
    }
}

impl From<WireCheckRun> for CommitCheck {
    fn from(wire: WireCheckRun) -> Self {
        let status = match wire.status.as_str() {
            "completed" => CheckStatus::Completed,
            "in_progress" => CheckStatus::InProgress,
            // Also `waiting`, `requested` and `pending`: such a check has not begun.
            _ => CheckStatus::Queued,
        };
        let completed = status == CheckStatus::Completed;
        Self {
            kind: CheckKind::Run,
            id: wire.id,
            name: wire.name,
            suite: wire.check_suite.map_or(0, |suite| suite.id),
            status,
            conclusion: completed.then(|| parse_conclusion(wire.conclusion.as_deref())),
            completed_at: parse_instant(wire.completed_at.as_deref()).filter(|_| completed),
            url: choose_page(wire.html_url, wire.details_url),
            output_tail: wire.output.map(WireOutput::tail).unwrap_or_default(),
        }
    }
}

/// Chooses the page of a check: GitHub's page for a job of GitHub Actions, the other system's page for the
/// rest.
fn choose_page(at_github: Option<String>, details: Option<String>) -> String {
    let is_actions = |url: &String| url.contains("/actions/runs/");
    let pages = [at_github.clone().filter(is_actions), details, at_github];
    let mut pages = pages.into_iter().flatten().filter(|page| !page.is_empty());
    pages.next().unwrap_or_default()
}

/// Parses a conclusion. An unknown or missing one counts as a failure, so that no check passes by accident.
fn parse_conclusion(text: Option<&str>) -> CheckConclusion {
    match text {
        Some("success") => CheckConclusion::Success,
        Some("neutral") => CheckConclusion::Neutral,
        Some("cancelled") => CheckConclusion::Cancelled,
        Some("skipped") => CheckConclusion::Skipped,
        Some("timed_out") => CheckConclusion::TimedOut,
        Some("action_required") => CheckConclusion::ActionRequired,
        Some("stale") => CheckConclusion::Stale,
        Some("startup_failure") => CheckConclusion::StartupFailure,
        Some(_) | None => CheckConclusion::Failure,
    }
}

#[derive(Deserialize)]
pub(crate) struct WireCombinedStatus {
    pub(crate) statuses: Vec<WireCommitStatus>,
}

#[derive(Deserialize)]
pub(crate) struct WireCommitStatus {
    id: u64,
    context: String,
    state: String,
    description: Option<String>,
    target_url: Option<String>,
    updated_at: Option<String>,
}

impl From<WireCommitStatus> for CommitCheck {
    fn from(wire: WireCommitStatus) -> Self {
        let conclusion = match wire.state.as_str() {
            "pending" => None,
            "success" => Some(CheckConclusion::Success),
            // `failure` and `error`. An unknown state must not pass either.
            _ => Some(CheckConclusion::Failure),
        };
        Self {
            kind: CheckKind::Status,
            id: wire.id,
            name: wire.context,
            // Only check runs belong to a suite.
            suite: 0,
            status: if conclusion.is_some() {
                CheckStatus::Completed
            } else {
                CheckStatus::InProgress
            },
            conclusion,
            completed_at: parse_instant(wire.updated_at.as_deref()).filter(|_| conclusion.is_some()),
            url: wire.target_url.unwrap_or_default(),
            output_tail: wire.description.unwrap_or_default(),
        }
    }
}

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

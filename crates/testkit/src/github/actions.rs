//! GitHub Actions runs. Each check suite is a run whose failed jobs can be rerun; held runs have not begun
//! and have no checks. The API redirects to a storage address for the log of a job.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::bail;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::{GitHubCaller, not_found, refuse_request};
use super::hub::GitHubState;
use super::rest::{ListPage, NumberPath, RepoPath, RestAnswer, with_repo};
use super::shape::{CI_LOGIN, simple_commit};
use super::state::RepositoryRecord;
use super::{FakeGitHub, RunConclusion, history};
use crate::http::{iso_now, render_json_answer};

/// Rerun of a run's failed jobs.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobRerun {
    /// Attempt number, from 1.
    pub(super) attempt: u32,
    /// True until [`FakeGitHub::end_reruns`] completes it.
    pub(super) is_under_way: bool,
}

/// Workflow run that has not begun.
#[derive(Debug, Clone)]
pub(super) struct HeldRun {
    id: u64,
    name: String,
    sha: String,
    state: HeldRunState,
    created: String,
}

/// Reason for which a run has not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldRunState {
    /// A first-time contributor made the change, so a maintainer has to approve the run.
    ActionRequired,
    /// The run's environment requires an approval.
    Waiting,
    /// All runners are busy.
    Queued,
}

impl HeldRunState {
    /// Returns the run's `status` and `conclusion`.
    const fn words(self) -> (&'static str, Option<&'static str>) {
        match self {
            // GitHub reports a required approval as a completed run.
            Self::ActionRequired => ("completed", Some("action_required")),
            Self::Waiting => ("waiting", None),
            Self::Queued => ("queued", None),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct WorkflowRunsQuery {
    head_sha: String,
}

impl RepositoryRecord {
    /// True while a failed check of the suite runs again.
    pub(super) fn is_under_way(&self, suite: u64, conclusion: RunConclusion) -> bool {
        !conclusion.passes() && self.again.get(&suite).is_some_and(|again| again.is_under_way)
    }

    fn held_run_json(&self, run: &HeldRun, url: &str) -> Option<Value> {
        let own = format!("{}/actions/runs/{}", self.api_url(url), run.id);
        let head = history::read_commit(&self.path, &run.sha).ok()?;
        let (status, conclusion) = run.state.words();
        Some(json!({
            "id": run.id, "name": run.name, "node_id": format!("WFR_{}", run.id),
            "head_branch": self.branch_of(&run.sha), "head_sha": run.sha, "path": ".github/workflows/ci.yml@main",
            "run_number": 1, "run_attempt": 1, "display_title": head.message, "event": "pull_request",
            "status": status, "conclusion": conclusion, "workflow_id": 1, "check_suite_id": run.id, "url": own,
            "html_url": format!("{url}/{}/actions/runs/{}", self.name, run.id),
            "pull_requests": self.minimal_pulls(&run.sha, url), "created_at": run.created, "updated_at": run.created,
            "jobs_url": format!("{own}/jobs"), "logs_url": format!("{own}/logs"),
            "check_suite_url": format!("{}/check-suites/{}", self.api_url(url), run.id),
            "artifacts_url": format!("{own}/artifacts"), "cancel_url": format!("{own}/cancel"),
            "rerun_url": format!("{own}/rerun"), "previous_attempt_url": null,
            "workflow_url": format!("{}/actions/workflows/1", self.api_url(url)),
            "head_commit": simple_commit(&head), "repository": self.json(url), "head_repository": self.json(url),
        }))
    }

    /// Renders the check suites of a commit's runs that have not begun, for GraphQL.
    pub(super) fn held_suites_graphql(&self, sha: &str) -> Vec<Value> {
        let held = self.held_runs.iter().filter(|run| run.sha == sha);
        let suites = held.map(|run| {
            let (status, conclusion) = run.state.words();
            json!({"status": status.to_uppercase(), "conclusion": conclusion.map(str::to_uppercase)})
        });
        suites.collect()
    }

    fn run_json(&self, run: u64, url: &str) -> Option<Value> {
        let mut checks = self.checks.iter().filter(|check| check.suite == run);
        // A suite without checks is not a run.
        let first = checks.next()?;
        let again = self.again.get(&run);
        let is_under_way = again.is_some_and(|again| again.is_under_way);
        let red = checks.chain([first]).any(|check| !check.conclusion.passes());
        let conclusion = if red { "failure" } else { "success" };
        let own = format!("{}/actions/runs/{run}", self.api_url(url));
        let head = history::read_commit(&self.path, &first.sha).ok()?;
        Some(json!({
            "id": run, "name": "CI", "node_id": format!("WFR_{run}"), "head_branch": self.branch_of(&first.sha),
            "head_sha": first.sha, "path": ".github/workflows/ci.yml@main", "run_number": 1,
            "run_attempt": again.map_or(1, |again| again.attempt), "display_title": head.message, "event": "pull_request",
            "status": if is_under_way { "in_progress" } else { "completed" },
            "conclusion": if is_under_way { Value::Null } else { json!(conclusion) }, "workflow_id": 1,
            "check_suite_id": run, "url": own, "html_url": format!("{url}/{}/actions/runs/{run}", self.name),
            "pull_requests": self.minimal_pulls(&first.sha, url), "created_at": first.completed,
            "updated_at": first.completed, "jobs_url": format!("{own}/jobs"), "logs_url": format!("{own}/logs"),
            "check_suite_url": format!("{}/check-suites/{run}", self.api_url(url)),
            "artifacts_url": format!("{own}/artifacts"), "cancel_url": format!("{own}/cancel"),
            "rerun_url": format!("{own}/rerun"), "previous_attempt_url": null,
            "workflow_url": format!("{}/actions/workflows/1", self.api_url(url)),
            "head_commit": simple_commit(&head), "repository": self.json(url),
            "head_repository": self.json(url),
        }))
    }
}

/// Lists the workflow runs of a commit. Checks of other Apps and of external CI systems belong to no run.
pub(super) async fn list_workflow_runs(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name)): RepoPath,
    page: ListPage,
    Query(only): Query<WorkflowRunsQuery>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let of_actions = repo
            .checks
            .iter()
            .filter(|check| check.sha == only.head_sha && check.app == CI_LOGIN && check.elsewhere.is_none());
        let suites: BTreeSet<u64> = of_actions.map(|check| check.suite).collect();
        // GitHub lists the newest run first; suite ids grow with time.
        let begun = suites
            .into_iter()
            .rev()
            .filter_map(|suite| repo.run_json(suite, &hub.url));
        let held = repo.held_runs.iter().filter(|run| run.sha == only.head_sha);
        let held = held.filter_map(|run| repo.held_run_json(run, &hub.url));
        Ok(page.answer_counted("workflow_runs", held.chain(begun).collect()))
    })
}

pub(super) async fn get_workflow_run(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, run)): NumberPath,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let run = repo.run_json(run, &hub.url).ok_or_else(not_found)?;
        Ok(render_json_answer(StatusCode::OK, run))
    })
}

pub(super) async fn rerun_failed_jobs(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, run)): NumberPath,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let checks = || repo.checks.iter().filter(|check| check.suite == run);
        checks().next().ok_or_else(not_found)?;
        let again = repo.again.get(&run);
        // GitHub refuses a rerun while the previous one is under way.
        if again.is_some_and(|again| again.is_under_way) {
            return Err(refuse_request(
                StatusCode::FORBIDDEN,
                "This workflow is already running",
            ));
        }
        if checks().all(|check| check.conclusion.passes()) {
            return Err(refuse_request(
                StatusCode::FORBIDDEN,
                "This workflow run has no failed jobs to run again",
            ));
        }
        let attempt = again.map_or(1, |again| again.attempt) + 1;
        let is_under_way = true;
        repo.again.insert(
            run,
            JobRerun {
                attempt,
                is_under_way,
            },
        );
        Ok(render_json_answer(StatusCode::CREATED, json!({})))
    })
}

impl FakeGitHub {
    /// Holds a commit's workflow run. It has no check runs until [`Self::begin_held_runs`].
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn hold_run(
        &self,
        repository: &str,
        sha: &str,
        name: &str,
        state: HeldRunState,
    ) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        let id = world.fresh_id();
        world.repo(repository)?.held_runs.push(HeldRun {
            id,
            name: name.to_owned(),
            sha: sha.to_owned(),
            state,
            created: iso_now(),
        });
        Ok(())
    }

    /// Approves all held runs, as a maintainer does. Their checks follow by separate calls.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn begin_held_runs(&self, repository: &str) -> anyhow::Result<()> {
        self.hub.world().repo(repository)?.held_runs.clear();
        Ok(())
    }

    /// Number of reruns of failed jobs in a repository.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn reruns(&self, repository: &str) -> anyhow::Result<u32> {
        let mut world = self.hub.world();
        let again = &world.repo(repository)?.again;
        Ok(again.values().map(|again| again.attempt - 1).sum())
    }

    /// Completes the rerun jobs with one conclusion. Sends `check_run` for each, then one `check_suite`.
    ///
    /// # Errors
    /// When no rerun is under way.
    pub fn end_reruns(
        &self,
        repository: &str,
        conclusion: RunConclusion,
        output: &str,
    ) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        let count = world.repo(repository)?.checks.len();
        // The ids are drawn before `repo` borrows the world.
        let mut ids: Vec<u64> = (0..count).map(|_| world.fresh_id()).collect();
        let repo = world.repo(repository)?;
        let mut again = repo.again.iter_mut();
        let Some((&run, again)) = again.find(|(_, again)| again.is_under_way) else {
            bail!("no jobs run again")
        };
        again.is_under_way = false;
        let now = iso_now();
        let mut sha = String::new();
        let checks = repo.checks.iter_mut().filter(|check| check.suite == run);
        for check in checks.filter(|check| !check.conclusion.passes()) {
            // GitHub gives each rerun check a new id; the suite keeps its own.
            check.id = ids.pop().unwrap_or_default();
            (check.conclusion, check.output) = (conclusion, output.to_owned());
            (check.completed, sha) = (now.clone(), check.sha.clone());
        }
        for check in repo.checks.iter().filter(|check| check.suite == run) {
            let check = repo.check_event_json(check, &self.hub.url);
            let payload = json!({"action": "completed", "check_run": check});
            self.hub.send_event(repo, "check_run", payload, CI_LOGIN);
        }
        let suite = repo.suite_event_json(run, &sha, &now, &self.hub.url);
        let payload = json!({"action": "completed", "check_suite": suite});
        self.hub.send_event(repo, "check_suite", payload, CI_LOGIN);
        Ok(())
    }
}

pub(super) async fn redirect_to_log(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, job)): Path<(String, String, u64)>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let check = repo.checks.iter().find(|check| check.id == job);
        check.ok_or_else(not_found)?;
        let to = format!("{}/stored-logs/{job}", hub.url);
        Ok((StatusCode::FOUND, [(header::LOCATION, to)]).into_response())
    })
}

/// Serves a log at its storage address. Its URL is its permission, so the address takes no credentials.
pub(super) async fn serve_job_log(
    State(hub): State<Arc<GitHubState>>,
    headers: HeaderMap,
    Path(job): Path<u64>,
) -> Response {
    // A client that forwards its token on a redirect would leak it to the storage service.
    if headers.contains_key(header::AUTHORIZATION) {
        hub.log
            .violation("a token was sent to where logs are stored".to_owned());
        return refuse_request(StatusCode::BAD_REQUEST, "credentials are not wanted here");
    }
    let world = hub.world();
    let mut checks = world.repos.values().flat_map(|repo| &repo.checks);
    match checks.find(|check| check.id == job) {
        Some(check) => {
            // A constant time keeps logs equal in all runs.
            let stamp = "2026-11-21T10:00:00.0000000Z";
            let body = check.output.lines().map(|line| format!("{stamp} {line}\n"));
            let end = match check.conclusion.as_str() {
                "success" => String::new(),
                _ => format!("{stamp} ##[error]Process completed with exit code 1.\n"),
            };
            let start = format!("{stamp} ##[group]Run {}\n{stamp} ##[endgroup]\n", check.name);
            format!("{start}{}{end}", body.collect::<String>()).into_response()
        }
        None => not_found(),
    }
}

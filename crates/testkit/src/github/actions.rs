//! Runs of GitHub Actions: each suite of checks is one, and its failed jobs can run again.

use std::sync::Arc;

use anyhow::bail;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::auth::{Caller, not_found, refuse};
use super::hub::Hub;
use super::rest::{Handled, NumberPath, with_repo};
use super::shape::{CI_LOGIN, simple_commit};
use super::state::Repo;
use super::{Conclusion, FakeGitHub, history};
use crate::http::{answer, iso_now};

/// A run whose failed jobs were started again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Again {
    /// From 1.
    pub(super) attempt: u32,
    /// Whether the jobs run now.
    pub(super) is_under_way: bool,
}

impl Repo {
    /// Whether a check runs now.
    pub(super) fn is_under_way(&self, suite: u64, conclusion: Conclusion) -> bool {
        !conclusion.passes() && self.again.get(&suite).is_some_and(|again| again.is_under_way)
    }

    fn run_json(&self, run: u64, url: &str) -> Option<Value> {
        let mut checks = self.checks.iter().filter(|check| check.suite == run);
        let first = checks.next()?;
        let again = self.again.get(&run);
        let is_under_way = again.is_some_and(|again| again.is_under_way);
        let red = checks.chain([first]).any(|check| !check.conclusion.passes());
        let conclusion = if red { "failure" } else { "success" };
        let own = format!("{}/actions/runs/{run}", self.api_url(url));
        let head = history::commit(&self.path, &first.sha).ok()?;
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

pub(super) async fn run(
    State(hub): State<Arc<Hub>>,
    _caller: Caller,
    Path((owner, name, run)): NumberPath,
) -> Handled {
    with_repo(&hub, &owner, &name, |repo| {
        let run = repo.run_json(run, &hub.url).ok_or_else(not_found)?;
        Ok(answer(StatusCode::OK, run))
    })
}

pub(super) async fn rerun_failed_jobs(
    State(hub): State<Arc<Hub>>,
    _caller: Caller,
    Path((owner, name, run)): NumberPath,
) -> Handled {
    with_repo(&hub, &owner, &name, |repo| {
        let checks = || repo.checks.iter().filter(|check| check.suite == run);
        checks().next().ok_or_else(not_found)?;
        let again = repo.again.get(&run);
        if again.is_some_and(|again| again.is_under_way) {
            return Err(refuse(StatusCode::FORBIDDEN, "This workflow is already running"));
        }
        if checks().all(|check| check.conclusion.passes()) {
            return Err(refuse(
                StatusCode::FORBIDDEN,
                "This workflow run has no failed jobs to run again",
            ));
        }
        let attempt = again.map_or(1, |again| again.attempt) + 1;
        let is_under_way = true;
        repo.again.insert(
            run,
            Again {
                attempt,
                is_under_way,
            },
        );
        Ok(answer(StatusCode::CREATED, json!({})))
    })
}

impl FakeGitHub {
    /// How often failed jobs were started again in a repository.
    ///
    /// # Errors
    /// When there is no such repository.
    pub fn reruns(&self, repository: &str) -> anyhow::Result<u32> {
        let mut world = self.hub.world();
        let again = &world.repo(repository)?.again;
        Ok(again.values().map(|again| again.attempt - 1).sum())
    }

    /// The jobs that were started again end, all in the same way. Sends `check_run` for each, then one `check_suite`.
    ///
    /// # Errors
    /// When no jobs run again.
    pub fn end_reruns(&self, repository: &str, conclusion: Conclusion, output: &str) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        let count = world.repo(repository)?.checks.len();
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
            check.id = ids.pop().unwrap_or_default();
            (check.conclusion, check.output) = (conclusion, output.to_owned());
            (check.completed, sha) = (now.clone(), check.sha.clone());
        }
        for check in repo.checks.iter().filter(|check| check.suite == run) {
            let check = repo.told_check_json(check, &self.hub.url);
            let payload = json!({"action": "completed", "check_run": check});
            self.hub.tell(repo, "check_run", payload, CI_LOGIN);
        }
        let suite = repo.told_suite_json(run, &sha, &now, &self.hub.url);
        let payload = json!({"action": "completed", "check_suite": suite});
        self.hub.tell(repo, "check_suite", payload, CI_LOGIN);
        Ok(())
    }
}

//! Check runs of CI and of Apps.

use std::sync::Arc;

use axum::{
    extract::{Path, Query, State},
    http::StatusCode,
};
use serde::Deserialize;
use serde_json::json;

use super::{
    FakeGitHub, RunConclusion,
    auth::{GitHubCaller, not_found, refuse_request},
    hub::GitHubState,
    repository,
    rest::{JsonBody, ListPage, NumberPath, RepoPath, RestAnswer, render_validation_failure, with_repo},
    state::CheckRunRecord,
};
use crate::http::{iso_now, render_json_answer};

// Maximum length of an output's summary in characters, as GitHub documents it.
const MAX_SUMMARY: usize = 65_535;

#[derive(Deserialize)]
pub(super) struct CheckRunsQuery {
    check_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewCheckRun {
    head_sha: String,
    external_id: String,
    #[serde(flatten)]
    said: CheckRunFields,
}

#[derive(Deserialize)]
pub(super) struct CheckRunFields {
    name: String,
    status: String,
    conclusion: String,
    output: CheckRunOutput,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckRunOutput {
    title: String,
    summary: String,
}

impl CheckRunFields {
    fn conclusion(&self) -> Option<RunConclusion> {
        match (self.status.as_str(), self.conclusion.as_str()) {
            ("completed", "success") => Some(RunConclusion::Success),
            ("completed", "neutral") => Some(RunConclusion::Neutral),
            ("completed", "failure") => Some(RunConclusion::Failure),
            _ => None,
        }
    }

    fn problem(&self) -> Option<&'static str> {
        match &self.output {
            _ if self.conclusion().is_none() => Some("conclusion is not included in the list"),
            CheckRunOutput { title, .. } if title.is_empty() => Some("output.title is missing"),
            CheckRunOutput { summary, .. } if summary.chars().count() > MAX_SUMMARY => {
                Some("summary is too long")
            }
            CheckRunOutput { .. } => None,
        }
    }
}

pub(super) async fn list_check_runs(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, sha)): Path<(String, String, String)>,
    page: ListPage,
    Query(only): Query<CheckRunsQuery>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        // The route accepts the name of a branch or the id of a commit.
        let branch = repository::list_branches(&repo.path)
            .get(&sha)
            .cloned()
            .unwrap_or_else(|| sha.clone());
        let checks = repo.checks.iter().filter(|check| {
            check.sha == branch && only.check_name.as_ref().is_none_or(|name| *name == check.name)
        });
        let runs = checks.map(|check| repo.check_json(check, &hub.url));
        Ok(page.answer_counted("check_runs", runs.collect()))
    })
}

pub(super) async fn create_check_run(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name)): RepoPath,
    JsonBody(new): JsonBody<NewCheckRun>,
) -> RestAnswer {
    let NewCheckRun {
        head_sha,
        external_id,
        said,
    } = new;
    apps_only(&caller)?;
    validate_check_run(&said)?;
    // The ids are drawn first, because `with_repo` holds the lock.
    let (id, suite) = {
        let mut world = hub.world();
        (world.fresh_id(), world.fresh_id())
    };
    with_repo(&hub, &owner, &name, |repo| {
        if super::history::read_commit(&repo.path, &head_sha).is_err() {
            let problem = format!("No commit found for SHA: {head_sha}");
            return Err(render_validation_failure(&json!([{"message": problem}])));
        }
        let made = CheckRunRecord {
            id,
            suite,
            app: caller.login(),
            external_id,
            title: said.output.title.clone(),
            elsewhere: None,
            name: said.name.clone(),
            sha: head_sha,
            conclusion: said.conclusion().unwrap_or(RunConclusion::Neutral),
            output: said.output.summary.clone(),
            completed: iso_now(),
        };
        let shown = repo.check_json(&made, &hub.url);
        let event = json!({"action": "completed", "check_run": repo.check_event_json(&made, &hub.url)});
        repo.checks.push(made);
        hub.send_event(repo, "check_run", event, caller.login());
        Ok(render_json_answer(StatusCode::CREATED, shown))
    })
}

pub(super) async fn update_check_run(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name, id)): NumberPath,
    JsonBody(said): JsonBody<CheckRunFields>,
) -> RestAnswer {
    apps_only(&caller)?;
    validate_check_run(&said)?;
    with_repo(&hub, &owner, &name, |repo| {
        let known = repo.checks.iter_mut().find(|check| check.id == id);
        let known = known.ok_or_else(not_found)?;
        // GitHub lets an App change its own check runs alone.
        if known.app != caller.login() {
            return Err(refuse_request(
                StatusCode::FORBIDDEN,
                "Invalid app_id for check run",
            ));
        }
        known.title = said.output.title.clone();
        known.output = said.output.summary.clone();
        known.conclusion = said.conclusion().unwrap_or(known.conclusion);
        let shown = known.clone();
        Ok(render_json_answer(
            StatusCode::OK,
            repo.check_json(&shown, &hub.url),
        ))
    })
}

fn apps_only(caller: &GitHubCaller) -> Result<(), axum::response::Response> {
    if caller.token.is_personal() {
        Err(refuse_request(
            StatusCode::FORBIDDEN,
            "You must authenticate via a GitHub App.",
        ))
    } else {
        Ok(())
    }
}

fn validate_check_run(said: &CheckRunFields) -> Result<(), axum::response::Response> {
    match said.problem() {
        Some(problem) => Err(render_validation_failure(&json!([{"message": problem}]))),
        None => Ok(()),
    }
}

impl FakeGitHub {
    /// Completes a check of an external CI system that has its own page and no log on GitHub. Sends
    /// `check_run`.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn run_check_elsewhere(
        &self,
        repository: &str,
        sha: &str,
        name: &str,
        conclusion: RunConclusion,
        page: &str,
    ) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        let (id, suite) = (world.fresh_id(), world.fresh_id());
        let repo = world.repo(repository)?;
        // A later result of the same check replaces the earlier one, as GitHub's default filter `latest`
        // shows it.
        repo.checks.retain(|known| known.sha != sha || known.name != name);
        let check = CheckRunRecord {
            id,
            suite,
            app: "circleci-checks[bot]",
            external_id: String::new(),
            title: name.to_owned(),
            elsewhere: Some(page.to_owned()),
            name: name.to_owned(),
            sha: sha.to_owned(),
            conclusion,
            output: String::new(),
            completed: iso_now(),
        };
        let event = json!({"action": "completed", "check_run": repo.check_event_json(&check, &self.hub.url)});
        let by = check.app;
        repo.checks.push(check);
        self.hub.send_event(repo, "check_run", event, by);
        Ok(())
    }

    /// Names of the check runs on a commit.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn check_runs(&self, repository: &str, sha: &str) -> anyhow::Result<Vec<String>> {
        let mut world = self.hub.world();
        let checks = &world.repo(repository)?.checks;
        let on = checks.iter().filter(|check| check.sha == sha);
        Ok(on.map(|check| check.name.clone()).collect())
    }

    /// Title, summary and conclusion of a commit's check run.
    ///
    /// # Errors
    /// When the repository or the check run does not exist.
    pub fn check_run(
        &self,
        repository: &str,
        sha: &str,
        name: &str,
    ) -> anyhow::Result<(String, String, &'static str)> {
        let mut world = self.hub.world();
        let mut checks = world.repo(repository)?.checks.iter();
        let found = checks.find(|check| check.sha == sha && check.name == name);
        let check = found.ok_or_else(|| anyhow::anyhow!("no check run {name} on {sha}"))?;
        Ok((
            check.title.clone(),
            check.output.clone(),
            check.conclusion.as_str(),
        ))
    }
}

//! Creation of issues over REST, and sub-issues.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::{GitHubCaller, not_found};
use super::hub::GitHubState;
use super::rest::{
    JsonBody, ListPage, NumberPath, RepoPath, RestAnswer, render_validation_failure, with_repo,
};
use super::state::{IssueRecord, RepositoryRecord};
use super::{FakeGitHub, StandInIssue};
use crate::http::render_json_answer;

/// Maximum number of sub-issues of an issue on GitHub.
const MOST_PARTS: usize = 100;
/// Maximum lengths of title and body in characters, as on GitHub.
const LONGEST_TITLE: usize = 256;
const LONGEST_BODY: usize = 65_536;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewIssueBody {
    title: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    labels: Vec<String>,
}

fn render_invalid_field(field: &str) -> Response {
    render_validation_failure(&json!([{"resource": "Issue", "code": "invalid", "field": field}]))
}

/// Opens an issue as the caller.
pub(super) async fn create_issue(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name)): RepoPath,
    JsonBody(wanted): JsonBody<NewIssueBody>,
) -> RestAnswer {
    if wanted.title.trim().is_empty() || wanted.title.chars().count() > LONGEST_TITLE {
        return Err(render_invalid_field("title"));
    }
    if wanted.body.chars().count() > LONGEST_BODY {
        return Err(render_invalid_field("body"));
    }
    let full_name = format!("{owner}/{name}");
    let opened = hub.open_issue(&full_name, caller.login(), &wanted.title, &wanted.body);
    let number = opened.map_err(|_| not_found())?;
    for label in &wanted.labels {
        let labeled = hub.label_issue(&full_name, number, label, caller.login());
        labeled.map_err(|_| not_found())?;
    }
    with_repo(&hub, &owner, &name, |repo| {
        let issue = issue_json(repo, number, &hub.url)?;
        Ok(render_json_answer(StatusCode::CREATED, issue))
    })
}

fn issue_json(repo: &RepositoryRecord, number: u64, url: &str) -> Result<Value, Response> {
    let issue = repo.issues.get(&number).ok_or_else(not_found)?;
    Ok(repo.issue_json(issue, url))
}

fn list_part_numbers(repo: &RepositoryRecord, parent: u64) -> Vec<u64> {
    let parts = repo.issues.values().filter(|issue| issue.parent == Some(parent));
    parts.map(|issue| issue.number).collect()
}

/// Lists the sub-issues of an issue.
pub(super) async fn list_sub_issues(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    page: ListPage,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        issue_json(repo, number, &hub.url)?;
        let parts = list_part_numbers(repo, number);
        let items = parts.iter().map(|part| issue_json(repo, *part, &hub.url));
        let items = items.collect::<Result<Vec<Value>, _>>()?;
        Ok(page.answer(items))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartBody {
    sub_issue_id: u64,
}

/// True if `of` is `number` or one of its sub-issues, at any depth.
fn is_ancestor_or_self(repo: &RepositoryRecord, number: u64, of: u64) -> bool {
    // The chain ends, because `add` refuses a circle.
    let mut next = Some(of);
    while let Some(at) = next {
        if at == number {
            return true;
        }
        next = repo.issues.get(&at).and_then(|issue| issue.parent);
    }
    false
}

/// Adds a sub-issue by its id (not its number). An issue has at most one parent, and no issue contains
/// itself.
pub(super) async fn add_sub_issue(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    JsonBody(wanted): JsonBody<PartBody>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        issue_json(repo, number, &hub.url)?;
        let part = repo.issues.values().find(|issue| issue.id == wanted.sub_issue_id);
        let part = part.ok_or_else(not_found)?;
        let (part, has_parent) = (part.number, part.parent.is_some());
        if has_parent
            || is_ancestor_or_self(repo, part, number)
            || list_part_numbers(repo, number).len() >= MOST_PARTS
        {
            return Err(render_invalid_field("sub_issue_id"));
        }
        repo.issue(part).map_err(|_| not_found())?.parent = Some(number);
        Ok(render_json_answer(
            StatusCode::CREATED,
            issue_json(repo, number, &hub.url)?,
        ))
    })
}

impl FakeGitHub {
    /// All issues of a repository, oldest first. An unknown repository has none.
    pub fn issues(&self, repository: &str) -> Vec<StandInIssue> {
        let world = self.hub.world();
        let repo = world.repos.get(repository);
        repo.into_iter()
            .flat_map(|repo| repo.issues.values())
            .map(IssueRecord::state)
            .collect()
    }

    /// Numbers of an issue's sub-issues, oldest first.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn sub_issues(&self, repository: &str, parent: u64) -> anyhow::Result<Vec<u64>> {
        let mut world = self.hub.world();
        Ok(list_part_numbers(world.repo(repository)?, parent))
    }
}

//! REST routes of issues, and those that pull requests share with them: GitHub's filters, pages and
//! validations.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::{GitHubCaller, not_found};
use super::hub::GitHubState;
use super::pulls::add_missing_names;
use super::rest::{
    JsonBody, ListPage, NumberPath, RepoPath, RestAnswer, find_invalid_parameter, render_validation_failure,
    with_repo,
};
use super::shape::label_json;
use super::state::RepositoryRecord;
use crate::http::render_json_answer;

#[derive(Deserialize)]
pub(super) struct IssuesQuery {
    state: Option<String>,
    sort: Option<String>,
    direction: Option<String>,
    creator: Option<String>,
    since: Option<String>,
}

impl IssuesQuery {
    /// Returns the name of the first parameter with a value that GitHub refuses.
    fn find_invalid(&self) -> Option<&'static str> {
        find_invalid_parameter(&[
            ("state", &self.state, &["open", "closed", "all"]),
            ("sort", &self.sort, &["created", "updated", "comments"]),
            ("direction", &self.direction, &["asc", "desc"]),
        ])
    }

    /// Sorts issues in their REST form as the query asks.
    fn order(&self, items: &mut [Value]) {
        // Issues of one second are in the order of their numbers.
        items.sort_by_key(|item| item["number"].as_u64());
        match self.sort.as_deref() {
            Some("comments") => items.sort_by_key(|item| item["comments"].as_u64()),
            Some("updated") => sort_by_time(items, "updated_at"),
            _ => sort_by_time(items, "created_at"),
        }
        if self.direction.as_deref() != Some("asc") {
            items.reverse();
        }
    }

    fn wants(&self, is_open: bool, updated: &str, author: &str) -> bool {
        let state = match self.state.as_deref().unwrap_or("open") {
            "all" => true,
            "closed" => !is_open,
            _ => is_open,
        };
        let is_theirs = |login: &str| login.eq_ignore_ascii_case(author);
        state
            && self.creator.as_deref().is_none_or(is_theirs)
            && self.since.as_deref().is_none_or(|since| updated >= since)
    }
}

fn sort_by_time(items: &mut [Value], field: &str) {
    items.sort_by(|left, right| left[field].as_str().cmp(&right[field].as_str()));
}

/// Lists a repository's issues. As on GitHub, pull requests are included.
pub(super) async fn list_issues(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name)): RepoPath,
    Query(query): Query<IssuesQuery>,
    page: ListPage,
) -> RestAnswer {
    if let Some(field) = query.find_invalid() {
        return Err(render_validation_failure(
            &json!([{"resource": "Issue", "code": "invalid", "field": field}]),
        ));
    }
    with_repo(&hub, &owner, &name, |repo| {
        let issues = repo.issues.values().filter(|issue| hub.log.lists(issue.made));
        let issues = issues.filter(|issue| query.wants(issue.is_open(), &issue.updated, &issue.author));
        let issues = issues.map(|issue| repo.issue_json(issue, &hub.url));
        let pulls = repo.pulls.values().filter(|pull| hub.log.lists(pull.made));
        let pulls = pulls.filter(|pull| query.wants(pull.open, &pull.updated, &pull.author));
        let pulls = pulls.map(|pull| repo.pull_as_issue_json(pull, &hub.url));
        let mut items: Vec<Value> = issues.chain(pulls).collect();
        query.order(&mut items);
        Ok(page.answer(items))
    })
}

/// Renders an issue, or a pull request in the form of an issue.
fn thread_json(hub: &GitHubState, repo: &RepositoryRecord, number: u64) -> Option<Value> {
    let issue = repo
        .issues
        .get(&number)
        .map(|issue| repo.issue_json(issue, &hub.url));
    issue.or_else(|| Some(repo.pull_as_issue_json(repo.pulls.get(&number)?, &hub.url)))
}

pub(super) async fn get_issue(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let found = thread_json(&hub, repo, number).ok_or_else(not_found)?;
        Ok(render_json_answer(StatusCode::OK, found))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IssueUpdateBody {
    title: Option<String>,
    body: Option<String>,
    state: Option<String>,
    state_reason: Option<String>,
    r#type: Option<String>,
}

pub(super) async fn update_issue(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    JsonBody(change): JsonBody<IssueUpdateBody>,
) -> RestAnswer {
    let (full_name, by) = (format!("{owner}/{name}"), caller.login());
    // An issue closes as completed unless the request has another reason.
    let reason = change.state_reason.as_deref().unwrap_or("completed");
    let closed_as = match (change.state.as_deref(), reason) {
        (None, _) => None,
        (Some("open"), _) => Some(None),
        (Some("closed"), "completed" | "not_planned") => Some(Some(reason)),
        (Some(_), _) => {
            return Err(render_validation_failure(
                &json!([{"resource": "Issue", "code": "invalid", "field": "state"}]),
            ));
        }
    };
    if change.title.as_ref().is_some_and(|title| title.trim().is_empty()) {
        return Err(render_validation_failure(
            &json!([{"resource": "Issue", "code": "missing_field", "field": "title"}]),
        ));
    }
    // The type comes first, because an invalid type must not leave a partial edit.
    if let Some(wanted) = &change.r#type {
        with_repo(&hub, &owner, &name, |repo| {
            repo.issue(number).map(drop).map_err(|_| not_found())
        })?;
        hub.set_issue_type(&full_name, number, by, wanted).map_err(|_| {
            render_validation_failure(
                &json!([{"resource": "Issue", "code": "invalid", "field": "type", "value": wanted}]),
            )
        })?;
    }
    if change.title.is_some() || change.body.is_some() {
        let texts = (change.title.as_deref(), change.body.as_deref());
        hub.edit_issue(&full_name, number, by, texts)
            .map_err(|_| not_found())?;
    }
    if let Some(closed_as) = closed_as {
        let changed = hub.set_issue_state(&full_name, number, by, closed_as);
        changed.map_err(|_| not_found())?;
    }
    get_issue(State(hub), caller, Path((owner, name, number))).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AssigneesBody {
    assignees: Vec<String>,
}

/// Adds assignees. Logins that are already assigned or cannot be assigned are skipped silently, as on GitHub.
pub(super) async fn add_assignees(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    JsonBody(wanted): JsonBody<AssigneesBody>,
) -> RestAnswer {
    let full_name = format!("{owner}/{name}");
    for login in &wanted.assignees {
        let can_have = with_repo(&hub, &owner, &name, |repo| Ok(may_have_issues(repo, login)))?;
        if can_have {
            let _ = hub.assign(&full_name, number, login, caller.login());
        }
    }
    let mut found = get_issue(State(hub), caller, Path((owner, name, number))).await?;
    // The route answers 201 even if no login was added.
    *found.status_mut() = StatusCode::CREATED;
    Ok(found)
}

fn may_have_issues(repo: &RepositoryRecord, login: &str) -> bool {
    let permission = repo.permissions.get(login).map(String::as_str);
    !matches!(permission, Some("read" | "none"))
}

/// Removes assignees. Logins that are not assigned are skipped silently, as on GitHub.
pub(super) async fn remove_assignees(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    JsonBody(wanted): JsonBody<AssigneesBody>,
) -> RestAnswer {
    for login in &wanted.assignees {
        let _ = hub.unassign(&format!("{owner}/{name}"), number, login, caller.login());
    }
    get_issue(State(hub), caller, Path((owner, name, number))).await
}

fn labels_of(repo: &RepositoryRecord, number: u64) -> Option<&Vec<String>> {
    let issue = repo.issues.get(&number).map(|issue| &issue.labels);
    issue.or_else(|| Some(&repo.pulls.get(&number)?.labels))
}

pub(super) async fn list_labels(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let labels = labels_of(repo, number).ok_or_else(not_found)?;
        Ok(render_json_answer(
            StatusCode::OK,
            repo.labels_json(labels, &hub.url),
        ))
    })
}

/// Both request shapes that GitHub accepts.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(super) enum LabelsBody {
    Object { labels: Vec<String> },
    List(Vec<String>),
}

pub(super) async fn add_labels(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    JsonBody(LabelsBody::Object { labels: new } | LabelsBody::List(new)): JsonBody<LabelsBody>,
) -> RestAnswer {
    let full_name = format!("{owner}/{name}");
    let is_issue = with_repo(&hub, &owner, &name, |repo| Ok(repo.issues.contains_key(&number)))?;
    if is_issue {
        for label in &new {
            let labeled = hub.label_issue(&full_name, number, label, caller.login());
            labeled.map_err(|_| not_found())?;
        }
    } else {
        label_pull(&hub, (&owner, &name, number), new, caller.login())?;
    }
    list_labels(State(hub), caller, Path((owner, name, number))).await
}

fn label_pull(
    hub: &GitHubState,
    (owner, name, number): (&str, &str, u64),
    labels: Vec<String>,
    by: &str,
) -> Result<(), axum::response::Response> {
    with_repo(hub, owner, name, |repo| {
        let pull = repo.pull(number).map_err(|_| not_found())?;
        let new = add_missing_names(&mut pull.labels, labels);
        let pull = pull.clone();
        for label in new {
            let labeled = json!({"label": label_json(repo, &label, &hub.url)});
            hub.send_pull_event_with(repo, &pull, "labeled", labeled, by);
        }
        Ok(())
    })
}

pub(super) async fn remove_label(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name, number, label)): Path<(String, String, u64, String)>,
) -> RestAnswer {
    let removed = hub.unlabel_issue(&format!("{owner}/{name}"), number, &label, caller.login());
    removed.map_err(|_| not_found())?;
    list_labels(State(hub), caller, Path((owner, name, number))).await
}

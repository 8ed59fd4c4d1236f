//! REST routes of comments on issues and pull requests.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;

use super::auth::{GitHubCaller, not_found, refuse_request};
use super::hub::GitHubState;
use super::rest::{JsonBody, ListPage, NumberPath, RestAnswer, render_validation_failure, with_repo};
use super::state::{CommentRecord, RepositoryRecord};
use crate::http::render_json_answer;

/// Maximum length of a comment in characters.
const MAX_BODY: usize = 65_536;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IssueCommentBody {
    body: String,
}

fn check_text(comment: IssueCommentBody) -> Result<String, axum::response::Response> {
    // GitHub counts characters, not bytes.
    let length = comment.body.chars().count();
    if comment.body.trim().is_empty() || length > MAX_BODY {
        return Err(render_validation_failure(
            &json!([{"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": "Body is blank or too long"}]),
        ));
    }
    Ok(comment.body)
}

pub(super) async fn list_comments(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    page: ListPage,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        repo.has_thread(number).then_some(()).ok_or_else(not_found)?;
        let comments = repo
            .comments
            .iter()
            .filter(|comment| comment.number == number && hub.log.lists(comment.made));
        let items = comments
            .map(|comment| repo.comment_json(comment, &hub.url))
            .collect();
        Ok(page.answer(items))
    })
}

#[derive(Deserialize)]
pub(super) struct AllQuery {
    since: Option<String>,
    sort: Option<String>,
    direction: Option<String>,
}

/// Lists all comments of a repository's issues and pull requests. GitHub ignores `direction` without `sort`.
pub(super) async fn list_all(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name)): Path<(String, String)>,
    Query(query): Query<AllQuery>,
    page: ListPage,
) -> RestAnswer {
    let sort = query.sort.as_deref();
    if !matches!(sort, None | Some("created" | "updated"))
        || !matches!(query.direction.as_deref(), None | Some("asc" | "desc"))
    {
        return Err(render_validation_failure(
            &json!([{"resource": "IssueComment", "code": "invalid", "field": "sort"}]),
        ));
    }
    with_repo(&hub, &owner, &name, |repo| {
        let is_wanted = |comment: &&CommentRecord| {
            let since = query.since.as_deref().unwrap_or_default();
            comment.updated.as_str() >= since && hub.log.lists(comment.made)
        };
        let mut found: Vec<&CommentRecord> = repo.comments.iter().filter(is_wanted).collect();
        if sort == Some("updated") {
            found.sort_by(|left, right| left.updated.cmp(&right.updated));
        }
        if sort.is_some() && query.direction.as_deref() != Some("asc") {
            found.reverse();
        }
        let items = found
            .into_iter()
            .map(|comment| repo.comment_json(comment, &hub.url))
            .collect();
        Ok(page.answer(items))
    })
}

pub(super) async fn create_comment(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    JsonBody(comment): JsonBody<IssueCommentBody>,
) -> RestAnswer {
    let text = check_text(comment)?;
    let full_name = format!("{owner}/{name}");
    with_repo(&hub, &owner, &name, |repo| {
        repo.check_lock(number, &caller, "create comment")
    })?;
    let comment = hub
        .comment(&full_name, number, caller.login(), &text)
        .map_err(|_| not_found())?;
    with_repo(&hub, &owner, &name, |repo| {
        Ok(render_json_answer(
            StatusCode::CREATED,
            repo.comment_json(&comment, &hub.url),
        ))
    })
}

/// Refuses a change of a comment by another account than its author. `done` is the kind of the change, such as
/// `deleted`.
fn check_author(
    hub: &GitHubState,
    caller: &GitHubCaller,
    comment: &CommentRecord,
    done: &str,
) -> Result<(), axum::response::Response> {
    if comment.author == caller.login() {
        return Ok(());
    }
    let (login, author) = (caller.login(), &comment.author);
    hub.log.violation(format!("{login} {done} a comment of {author}"));
    let message = "Must be the author of the comment";
    Err(refuse_request(StatusCode::FORBIDDEN, message))
}

pub(super) async fn update_comment(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name, id)): Path<(String, String, u64)>,
    JsonBody(comment): JsonBody<IssueCommentBody>,
) -> RestAnswer {
    let text = check_text(comment)?;
    let full_name = format!("{owner}/{name}");
    let find = |repo: &RepositoryRecord| repo.comments.iter().find(|comment| comment.id == id).cloned();
    // The comment is cloned, because `edit_comment` takes the lock again.
    let comment = with_repo(&hub, &owner, &name, |repo| find(repo).ok_or_else(not_found))?;
    check_author(&hub, &caller, &comment, "changed")?;
    with_repo(&hub, &owner, &name, |repo| {
        repo.check_lock(comment.number, &caller, "update comment")
    })?;
    hub.edit_comment(&full_name, id, caller.login(), &text)
        .map_err(|_| not_found())?;
    with_repo(&hub, &owner, &name, |repo| {
        let comment = find(repo).ok_or_else(not_found)?;
        Ok(render_json_answer(
            StatusCode::OK,
            repo.comment_json(&comment, &hub.url),
        ))
    })
}

pub(super) async fn delete_comment(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name, id)): NumberPath,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let found = repo
            .comments
            .iter()
            .position(|comment| comment.id == id)
            .ok_or_else(not_found)?;
        check_author(&hub, &caller, &repo.comments[found], "deleted")?;
        repo.comments.remove(found);
        Ok(StatusCode::NO_CONTENT.into_response())
    })
}

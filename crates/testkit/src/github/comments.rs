//! REST routes of comments on issues and pull requests.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{OriginalUri, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;

use super::auth::{Caller, not_found, refuse};
use super::hub::Hub;
use super::rest::{Handled, NumberPath, PageQuery, invalid, read, with_repo};
use super::state::{Comment, Repo};
use crate::http::answer;

/// Maximum length of a comment in characters.
const MAX_BODY: usize = 65_536;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommentBody {
    body: String,
}

fn read_body(headers: &HeaderMap, body: &Bytes) -> Result<String, axum::response::Response> {
    let comment: CommentBody = read(headers, body)?;
    // GitHub counts characters, not bytes.
    let length = comment.body.chars().count();
    if comment.body.trim().is_empty() || length > MAX_BODY {
        return Err(invalid(
            &json!([{"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": "Body is blank or too long"}]),
        ));
    }
    Ok(comment.body)
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    _caller: Caller,
    uri: OriginalUri,
    Path((owner, name, number)): NumberPath,
    Query(page): Query<PageQuery>,
) -> Handled {
    with_repo(&hub, &owner, &name, |repo| {
        repo.has_thread(number).then_some(()).ok_or_else(not_found)?;
        let comments = repo
            .comments
            .iter()
            .filter(|comment| comment.number == number && hub.log.lists(comment.made));
        let items = comments
            .map(|comment| repo.comment_json(comment, &hub.url))
            .collect();
        Ok(page.answer(&hub, &uri.0, items))
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
    State(hub): State<Arc<Hub>>,
    _caller: Caller,
    uri: OriginalUri,
    Path((owner, name)): Path<(String, String)>,
    (Query(query), Query(page)): (Query<AllQuery>, Query<PageQuery>),
) -> Handled {
    let sort = query.sort.as_deref();
    if !matches!(sort, None | Some("created" | "updated"))
        || !matches!(query.direction.as_deref(), None | Some("asc" | "desc"))
    {
        return Err(invalid(
            &json!([{"resource": "IssueComment", "code": "invalid", "field": "sort"}]),
        ));
    }
    with_repo(&hub, &owner, &name, |repo| {
        let is_wanted = |comment: &&Comment| {
            let since = query.since.as_deref().unwrap_or_default();
            comment.updated.as_str() >= since && hub.log.lists(comment.made)
        };
        let mut found: Vec<&Comment> = repo.comments.iter().filter(is_wanted).collect();
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
        Ok(page.answer(&hub, &uri.0, items))
    })
}

pub(super) async fn create(
    State(hub): State<Arc<Hub>>,
    caller: Caller,
    Path((owner, name, number)): NumberPath,
    headers: HeaderMap,
    body: Bytes,
) -> Handled {
    let text = read_body(&headers, &body)?;
    let full_name = format!("{owner}/{name}");
    let comment = hub
        .comment(&full_name, number, caller.login(), &text)
        .map_err(|_| not_found())?;
    with_repo(&hub, &owner, &name, |repo| {
        Ok(answer(StatusCode::CREATED, repo.comment_json(&comment, &hub.url)))
    })
}

pub(super) async fn update(
    State(hub): State<Arc<Hub>>,
    caller: Caller,
    Path((owner, name, id)): Path<(String, String, u64)>,
    headers: HeaderMap,
    body: Bytes,
) -> Handled {
    let text = read_body(&headers, &body)?;
    let full_name = format!("{owner}/{name}");
    let find = |repo: &Repo| repo.comments.iter().find(|comment| comment.id == id).cloned();
    // The comment is cloned, because `edit_comment` takes the lock again.
    let comment = with_repo(&hub, &owner, &name, |repo| find(repo).ok_or_else(not_found))?;
    if comment.author != caller.login() {
        hub.log.violation(format!(
            "{} changed a comment of {}",
            caller.login(),
            comment.author
        ));
        return Err(refuse(StatusCode::FORBIDDEN, "Must be the author of the comment"));
    }
    hub.edit_comment(&full_name, id, caller.login(), &text)
        .map_err(|_| not_found())?;
    with_repo(&hub, &owner, &name, |repo| {
        let comment = find(repo).ok_or_else(not_found)?;
        Ok(answer(StatusCode::OK, repo.comment_json(&comment, &hub.url)))
    })
}

pub(super) async fn delete(
    State(hub): State<Arc<Hub>>,
    caller: Caller,
    Path((owner, name, id)): NumberPath,
) -> Handled {
    with_repo(&hub, &owner, &name, |repo| {
        let found = repo
            .comments
            .iter()
            .position(|comment| comment.id == id)
            .ok_or_else(not_found)?;
        if repo.comments[found].author != caller.login() {
            hub.log.violation(format!(
                "{} deleted a comment of {}",
                caller.login(),
                repo.comments[found].author
            ));
            return Err(refuse(StatusCode::FORBIDDEN, "Must be the author of the comment"));
        }
        repo.comments.remove(found);
        Ok(StatusCode::NO_CONTENT.into_response())
    })
}

//! Redirects of renamed repositories and moved issues, and refusals of deleted issues and archived repositories.
//! The old address of a repository leads to an address by id, which serves the repository under its new name.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tower::ServiceExt as _;

use super::auth::refuse_request;
use super::departures::IssueRemoval;
use super::hub::{GitHubRecords, GitHubState};
use super::locks::refuse_archived;
use crate::http::render_json_answer;

/// Wraps the routes of current names: redirects calls by an old name and rewrites calls by id.
pub(super) fn build_redirecting_router(hub: Arc<GitHubState>, today: Router) -> Router {
    Router::new().fallback(move |request: Request| {
        let (hub, today) = (Arc::clone(&hub), today.clone());
        async move {
            match resolve_address(&hub, &request) {
                ResolvedAddress::AsItIs => today.oneshot(request).await.into_response(),
                ResolvedAddress::Renamed(uri) => {
                    let (mut parts, body) = request.into_parts();
                    parts.uri = uri;
                    today
                        .oneshot(Request::from_parts(parts, body))
                        .await
                        .into_response()
                }
                ResolvedAddress::SentOn(location) => sent_on(request.method(), location),
                ResolvedAddress::Deleted => refuse_request(StatusCode::GONE, "This issue was deleted"),
                ResolvedAddress::Archived => refuse_archived(),
                ResolvedAddress::ArchivedGit => (
                    StatusCode::FORBIDDEN,
                    [(header::CONTENT_TYPE, "text/plain")],
                    "This repository was archived so it is read-only.\n",
                )
                    .into_response(),
            }
        }
    })
}

enum ResolvedAddress {
    AsItIs,
    Renamed(Uri),
    SentOn(String),
    /// A call about a deleted issue.
    Deleted,
    /// A write to an archived repository.
    Archived,
    /// A push to an archived repository.
    ArchivedGit,
}

/// Number of the issue or pull request in a path below a repository, with the kind before it and the rest after it.
fn split_thread_path(rest: &str) -> Option<ThreadPath<'_>> {
    let (kind, below) = rest.split_once('/')?;
    let number = below.split('/').next()?;
    matches!(kind, "issues" | "pulls").then_some(())?;
    Some(ThreadPath {
        kind,
        number: number.parse().ok()?,
        tail: &below[number.len()..],
    })
}

struct ThreadPath<'a> {
    kind: &'a str,
    number: u64,
    tail: &'a str,
}

fn resolve_address(hub: &GitHubState, request: &Request) -> ResolvedAddress {
    let uri = request.uri();
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    // The rest of the path stays whole, because it may contain a branch name.
    let parts: Vec<&str> = uri.path().trim_start_matches('/').splitn(4, '/').collect();
    let world = hub.world();
    match parts.as_slice() {
        ["repositories", id, rest @ ..] => {
            let named = world
                .repos
                .values()
                .find(|repo| repo.id.to_string() == *id)
                .map(|repo| repo.name.clone());
            let rest = rest
                .iter()
                .fold(String::new(), |path, part| format!("{path}/{part}"));
            match named.map(|name| format!("/repos/{name}{rest}{query}").parse()) {
                Some(Ok(uri)) => ResolvedAddress::Renamed(uri),
                Some(Err(_)) | None => ResolvedAddress::AsItIs,
            }
        }
        ["repos", owner, name, rest @ ..] => match world.moved.get(&format!("{owner}/{name}")) {
            Some(id) => {
                let rest = rest.first().map(|rest| format!("/{rest}")).unwrap_or_default();
                ResolvedAddress::SentOn(format!("{}/repositories/{id}{rest}{query}", hub.url))
            }
            None => {
                let full_name = format!("{owner}/{name}");
                let thread = rest.first().and_then(|rest| split_thread_path(rest));
                let target = thread.as_ref().and_then(|thread| {
                    let place = (full_name.clone(), thread.number);
                    world.transferred.get(&place)
                });
                if let (Some(thread), Some((base, number))) = (&thread, target) {
                    let ThreadPath { kind, tail, .. } = thread;
                    return ResolvedAddress::SentOn(format!(
                        "{}{base}/{kind}/{number}{tail}{query}",
                        hub.url
                    ));
                }
                let repo = world.repos.get(&full_name);
                let is_deleted = |thread: &ThreadPath<'_>| {
                    let removal = repo.and_then(|repo| repo.removed.get(&thread.number));
                    thread.kind == "issues" && removal == Some(&IssueRemoval::Deleted)
                };
                if thread.as_ref().is_some_and(is_deleted) {
                    return ResolvedAddress::Deleted;
                }
                let is_archived = repo.is_some_and(|repo| repo.is_archived);
                if is_archived && *request.method() != Method::GET {
                    ResolvedAddress::Archived
                } else {
                    ResolvedAddress::AsItIs
                }
            }
        },
        ["git", owner, name, rest] if is_archived_push(&world, owner, name, rest, &query) => {
            ResolvedAddress::ArchivedGit
        }
        ["git", owner, name, rest] => {
            let old = format!("{owner}/{}", name.trim_end_matches(".git"));
            let id = world.moved.get(&old);
            let found = id.and_then(|id| world.repos.values().find(|repo| repo.id == *id));
            found.map_or(ResolvedAddress::AsItIs, |repo| {
                ResolvedAddress::SentOn(format!("{}/git/{}.git/{rest}{query}", hub.url, repo.name))
            })
        }
        _ => ResolvedAddress::AsItIs,
    }
}

/// True for a push to an archived repository.
fn is_archived_push(world: &GitHubRecords, owner: &str, name: &str, rest: &str, query: &str) -> bool {
    let full_name = format!("{owner}/{}", name.trim_end_matches(".git"));
    let is_archived = world.repos.get(&full_name).is_some_and(|repo| repo.is_archived);
    is_archived && (rest.ends_with("git-receive-pack") || query.contains("service=git-receive-pack"))
}

/// Redirects with 301 for reads and 307 for writes, as GitHub does. A client keeps the method and body on a
/// 307 alone.
fn sent_on(method: &Method, location: String) -> Response {
    let (status, message) = if *method == Method::GET {
        (StatusCode::MOVED_PERMANENTLY, "Moved Permanently")
    } else {
        (StatusCode::TEMPORARY_REDIRECT, "Temporary Redirect")
    };
    let body = json!({
        "message": message, "url": location, "documentation_url": "https://docs.github.example/rest#http-redirects",
    });
    let mut response = render_json_answer(status, body);
    if let Ok(value) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, value);
    }
    response
}

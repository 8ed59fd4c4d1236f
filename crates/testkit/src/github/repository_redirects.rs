//! Redirects of renamed repositories. The old address leads to an address by id, which serves the repository
//! under its new name.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tower::ServiceExt as _;

use super::hub::GitHubState;
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
            }
        }
    })
}

enum ResolvedAddress {
    AsItIs,
    Renamed(Uri),
    SentOn(String),
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
            None => ResolvedAddress::AsItIs,
        },
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

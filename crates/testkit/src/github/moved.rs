//! Redirects of renamed repositories. The old address leads to an address by id, which serves the repository
//! under its new name.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tower::ServiceExt as _;

use super::hub::Hub;
use crate::http::answer;

/// Wraps the routes of current names: redirects calls by an old name and rewrites calls by id.
pub(super) fn router(hub: Arc<Hub>, today: Router) -> Router {
    Router::new().fallback(move |request: Request| {
        let (hub, today) = (Arc::clone(&hub), today.clone());
        async move {
            match resolve(&hub, &request) {
                Resolved::AsItIs => today.oneshot(request).await.into_response(),
                Resolved::Renamed(uri) => {
                    let (mut parts, body) = request.into_parts();
                    parts.uri = uri;
                    today
                        .oneshot(Request::from_parts(parts, body))
                        .await
                        .into_response()
                }
                Resolved::SentOn(location) => sent_on(request.method(), location),
            }
        }
    })
}

enum Resolved {
    AsItIs,
    Renamed(Uri),
    SentOn(String),
}

fn resolve(hub: &Hub, request: &Request) -> Resolved {
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
                Some(Ok(uri)) => Resolved::Renamed(uri),
                Some(Err(_)) | None => Resolved::AsItIs,
            }
        }
        ["repos", owner, name, rest @ ..] => match world.moved.get(&format!("{owner}/{name}")) {
            Some(id) => {
                let rest = rest.first().map(|rest| format!("/{rest}")).unwrap_or_default();
                Resolved::SentOn(format!("{}/repositories/{id}{rest}{query}", hub.url))
            }
            None => Resolved::AsItIs,
        },
        ["git", owner, name, rest] => {
            let old = format!("{owner}/{}", name.trim_end_matches(".git"));
            let id = world.moved.get(&old);
            let found = id.and_then(|id| world.repos.values().find(|repo| repo.id == *id));
            found.map_or(Resolved::AsItIs, |repo| {
                Resolved::SentOn(format!("{}/git/{}.git/{rest}{query}", hub.url, repo.name))
            })
        }
        _ => Resolved::AsItIs,
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
    let mut response = answer(status, body);
    if let Ok(value) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, value);
    }
    response
}

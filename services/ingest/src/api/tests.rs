use std::collections::{BTreeMap, BTreeSet};

use api::types::Role;
use axum::{
    body::Body,
    http::{Request, StatusCode},
};
use serde_json::Value;
use tower::ServiceExt;

use super::auth::ApiToken;
use super::*;
use crate::hex;

/// Method, path and least role of every route.
const ROUTES: [(&str, &str, Role); 33] = [
    ("GET", "/v1/me", Role::Viewer),
    ("GET", "/v1/activity", Role::Viewer),
    ("GET", "/v1/ticket-summaries", Role::Viewer),
    ("POST", "/v1/pull-requests", Role::Operator),
    ("GET", "/v1/pull-requests/{id}", Role::Viewer),
    ("GET", "/v1/runs", Role::Viewer),
    ("GET", "/v1/runs/{id}", Role::Viewer),
    ("GET", "/v1/runs/{id}/journal", Role::Viewer),
    ("GET", "/v1/runs/{id}/timeline", Role::Viewer),
    ("GET", "/v1/runs/{id}/diff", Role::Viewer),
    ("GET", "/v1/runs/{id}/events", Role::Viewer),
    ("GET", "/v1/events", Role::Viewer),
    ("GET", "/v1/spend", Role::Viewer),
    ("GET", "/v1/tickets", Role::Viewer),
    ("GET", "/v1/tickets/{key}", Role::Viewer),
    ("GET", "/v1/tickets/{key}/text", Role::Viewer),
    ("GET", "/v1/dead", Role::Viewer),
    ("GET", "/v1/pools", Role::Viewer),
    ("GET", "/v1/rules", Role::Viewer),
    ("GET", "/v1/credentials", Role::Viewer),
    ("POST", "/v1/jobs", Role::Operator),
    ("POST", "/v1/runs/{id}/decision", Role::Operator),
    ("POST", "/v1/runs/{id}/stop", Role::Operator),
    ("POST", "/v1/tickets/{key}/stop", Role::Operator),
    ("POST", "/v1/tickets/{key}/retry", Role::Operator),
    ("POST", "/v1/tickets/{key}/comments", Role::Operator),
    ("GET", "/v1/dead/{sequence}", Role::Operator),
    ("DELETE", "/v1/dead/{sequence}", Role::Operator),
    ("POST", "/v1/dead/{sequence}/retry", Role::Operator),
    ("DELETE", "/v1/tickets/{key}", Role::Admin),
    ("GET", "/v1/stop-all", Role::Viewer),
    ("POST", "/v1/stop-all", Role::Admin),
    ("DELETE", "/v1/stop-all", Role::Admin),
];

fn select_role_token(role: Role) -> &'static str {
    match role {
        Role::Viewer => "token-of-a-viewer",
        Role::Operator => "token-of-an-operator",
        Role::Admin => "token-of-an-admin",
    }
}

fn build_test_router() -> axum::Router {
    let tokens = [Role::Viewer, Role::Operator, Role::Admin].map(|role| {
        (
            format!("{role:?}"),
            ApiToken {
                sha256: hex::hash_sha256(select_role_token(role).as_bytes()),
                role,
                repositories: None,
                projects: None,
                speaks_for_people: false,
            },
        )
    });
    build_api_router(ApiState {
        router: Arc::default(),
        tokens: Arc::new(ApiTokens::new(&BTreeMap::from(tokens)).expect("hashes")),
        shutdown: CancellationToken::new(),
        streams: Arc::default(),
        reads: Arc::default(),
        followed: Arc::default(),
        known_runs: Arc::default(),
    })
}

async fn call_api(method: &str, path: &str, authorization: Option<&str>) -> (StatusCode, Value) {
    let path = path
        .replace("{id}", "jira:ENG-1@1")
        .replace("{key}", "ENG-1")
        .replace("{sequence}", "1");
    let body = match path.as_str() {
        "/v1/tickets/ENG-1/comments" => r#"{"text": "Half up."}"#,
        "/v1/jobs" => r#"{"ticket": "ENG-1", "job": "implement"}"#,
        _ => r#"{"verdict": "approve"}"#,
    };
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    if let Some(value) = authorization {
        request = request.header("authorization", value);
    }
    let answer = build_test_router()
        .oneshot(request.body(Body::from(body)).expect("request"))
        .await
        .expect("answer");
    let status = answer.status();
    let bytes = axum::body::to_bytes(answer.into_body(), 1 << 20)
        .await
        .expect("body");
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

#[tokio::test]
async fn no_route_answers_without_a_valid_token() {
    for (method, path, _) in ROUTES {
        let viewer = select_role_token(Role::Viewer);
        for header in [
            None,
            Some("Bearer wrong"),
            Some("Bearer "),
            Some("Basic dXNlcjpwdw=="),
            Some(viewer),
        ] {
            let (status, body) = call_api(method, path, header).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{method} {path} {header:?}");
            assert_eq!(body["error"], "unauthorized");
        }
    }
}

#[tokio::test]
async fn routes_require_role_and_connected_queue() {
    for (method, path, least) in ROUTES {
        for role in [Role::Viewer, Role::Operator, Role::Admin] {
            let bearer = format!("Bearer {}", select_role_token(role));
            let (status, body) = call_api(method, path, Some(&bearer)).await;
            let expected = if role < least {
                StatusCode::FORBIDDEN
            } else {
                StatusCode::SERVICE_UNAVAILABLE
            };
            assert_eq!(status, expected, "{method} {path} {role:?} {body}");
        }
    }
}

#[tokio::test]
async fn document_lists_exactly_the_routes() {
    let (status, document) = call_api("GET", "/v1/openapi.json", None).await;
    assert_eq!(status, StatusCode::OK);
    let paths = document["paths"].as_object().expect("paths");
    let listed: BTreeSet<_> = paths
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().into_iter().flat_map(|item| item.keys());
            methods.map(move |method| (method.to_uppercase(), path.clone()))
        })
        .collect();
    let routes = ROUTES.map(|(method, path, _)| (method.to_owned(), path.to_owned()));
    assert_eq!(listed, BTreeSet::from(routes));
}

/// Clients are written against the document in docs/. Regenerate it with `WRITE_OPENAPI=1 cargo test -p ingest openapi`.
#[tokio::test]
async fn published_openapi_document_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let (_, document) = call_api("GET", "/v1/openapi.json", None).await;
    let served = format!("{document:#}\n");
    if std::env::var_os("WRITE_OPENAPI").is_some() {
        std::fs::write(path, &served).expect("docs/openapi.json is writable");
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        published == served,
        "docs/openapi.json is not what is served: look at the difference after writing it anew"
    );
}

#[tokio::test]
async fn unknown_route_returns_json_problem() {
    let (status, body) = call_api("GET", "/v1/nonsense", None).await;
    assert_eq!(
        (status, &body["error"]),
        (StatusCode::NOT_FOUND, &Value::from("not_found"))
    );
}

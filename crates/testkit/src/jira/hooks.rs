//! Webhooks that an administrator registers, and what the site says of itself.

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use serde::Deserialize;
use serde_json::{Value, json};

use super::desk::Desk;
use super::extract::Caller;
use super::rest::{Handled, bad, refuse};
use super::{ADMIN_API_TOKEN, ADMIN_EMAIL, FakeJira};
use crate::http::{answer, basic_auth, lock};

/// Events that Jira knows, of which Journeyman listens to three.
const EVENTS: [&str; 5] = [
    "jira:issue_created",
    "jira:issue_updated",
    "jira:issue_deleted",
    "comment_created",
    "comment_updated",
];

pub(super) fn router() -> Router<Arc<Desk>> {
    Router::new()
        .route("/rest/api/2/serverInfo", get(server_info))
        .route("/rest/webhooks/1.0/webhook", get(list).post(create))
        .route("/rest/webhooks/1.0/webhook/{id}", put(update))
}

async fn server_info(State(desk): State<Arc<Desk>>) -> Response {
    let kind = if *lock(&desk.is_data_center) {
        "Server"
    } else {
        "Cloud"
    };
    let body = json!({"baseUrl": desk.url, "version": "1001.0.0-SNAPSHOT", "deploymentType": kind});
    answer(StatusCode::OK, body)
}

/// Webhooks are for administrators; everybody else is refused.
struct Admin;

impl FromRequestParts<Arc<Desk>> for Admin {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, desk: &Arc<Desk>) -> Result<Self, Response> {
        let is_admin = basic_auth(&parts.headers)
            .is_some_and(|(email, token)| email == ADMIN_EMAIL && token == ADMIN_API_TOKEN);
        if is_admin {
            return Ok(Self);
        }
        Caller::from_request_parts(parts, desk).await?;
        let problem = "Only Jira administrators can manage webhooks.";
        Err(refuse(StatusCode::FORBIDDEN, problem))
    }
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Sent {
    name: String,
    url: String,
    events: Vec<String>,
    filters: Value,
    exclude_body: bool,
    secret: String,
}

/// A webhook that is registered; its secret is not told.
pub(super) struct Hook {
    id: u64,
    sent: Sent,
}

impl Hook {
    fn json(&self, url: &str) -> Value {
        json!({
            "name": self.sent.name, "url": self.sent.url, "events": self.sent.events, "filters": self.sent.filters,
            "excludeBody": self.sent.exclude_body, "enabled": true,
            "self": format!("{url}/rest/webhooks/1.0/webhook/{}", self.id),
        })
    }
}

async fn list(State(desk): State<Arc<Desk>>, _admin: Admin) -> Response {
    let hooks = lock(&desk.hooks);
    let list = hooks.iter().map(|hook| hook.json(&desk.url)).collect();
    answer(StatusCode::OK, Value::Array(list))
}

async fn create(State(desk): State<Arc<Desk>>, _admin: Admin, body: axum::body::Bytes) -> Handled {
    let sent = checked(&body)?;
    let mut hooks = lock(&desk.hooks);
    let id = hooks.len() as u64 + 1;
    let hook = Hook { id, sent };
    desk.webhooks.set_target(&hook.sent.url, &hook.sent.secret);
    let body = hook.json(&desk.url);
    hooks.push(hook);
    Ok(answer(StatusCode::CREATED, body))
}

async fn update(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<u64>,
    _admin: Admin,
    body: axum::body::Bytes,
) -> Handled {
    let sent = checked(&body)?;
    let mut hooks = lock(&desk.hooks);
    let known = hooks.iter_mut().find(|hook| hook.id == id);
    let known = known.ok_or_else(|| StatusCode::NOT_FOUND.into_response())?;
    desk.webhooks.set_target(&sent.url, &sent.secret);
    known.sent = sent;
    Ok(answer(StatusCode::OK, known.json(&desk.url)))
}

fn checked(body: &axum::body::Bytes) -> Result<Sent, Response> {
    let sent: Sent = crate::http::parse(body).map_err(bad)?;
    match sent.events.iter().find(|event| !EVENTS.contains(&event.as_str())) {
        Some(unknown) => Err(bad(format!("Unknown event {unknown}"))),
        None => Ok(sent),
    }
}

impl FakeJira {
    /// The webhooks that were registered: where each goes, and the filter of its issues.
    #[must_use]
    pub fn registered_webhooks(&self) -> Vec<(String, String)> {
        let hooks = lock(&self.desk.hooks);
        let filter = |hook: &Hook| {
            hook.sent.filters["issue-related-events-section"]
                .as_str()
                .map(str::to_owned)
        };
        let hooks = hooks.iter();
        hooks
            .map(|hook| (hook.sent.url.clone(), filter(hook).unwrap_or_default()))
            .collect()
    }

    /// It says that it is a Data Center from now on.
    pub fn become_data_center(&self) {
        *lock(&self.desk.is_data_center) = true;
    }
}

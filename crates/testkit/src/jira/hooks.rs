//! Webhooks that an administrator registers, and the site's server information.

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use serde::Deserialize;
use serde_json::{Value, json};

use super::desk::JiraState;
use super::extractors::{JiraCaller, read_bearer_token};
use super::rest::{JiraAnswer, refuse_request, render_bad_request};
use super::site::StandInSite;
use super::{ADMIN_API_TOKEN, ADMIN_EMAIL, FakeJira, JiraKind, data_center};
use crate::http::{basic_auth, header_text, render_json_answer};

// Events that Jira accepts in registrations. Journeyman subscribes to three of them.
const EVENTS: [&str; 5] = [
    "jira:issue_created",
    "jira:issue_updated",
    "jira:issue_deleted",
    "comment_created",
    "comment_updated",
];

/// Builds the routes. A Data Center of release 10 or later has other addresses.
pub(super) fn build_hook_routes(site: &StandInSite) -> Router<Arc<JiraState>> {
    let hooks = match site.kind {
        JiraKind::DataCenter(10..) => data_center::build_webhook_routes(),
        JiraKind::Cloud | JiraKind::DataCenter(_) => Router::new()
            .route("/rest/webhooks/1.0/webhook", get(list_hooks).post(create_hook))
            .route("/rest/webhooks/1.0/webhook/{id}", put(update_hook)),
    };
    hooks.route("/rest/api/2/serverInfo", get(server_info))
}

async fn server_info(State(desk): State<Arc<JiraState>>) -> Response {
    render_json_answer(StatusCode::OK, desk.site.info())
}

/// Administrator. Other callers get 403 from the webhook routes.
pub(super) struct JiraAdministrator;

impl FromRequestParts<Arc<JiraState>> for JiraAdministrator {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, desk: &Arc<JiraState>) -> Result<Self, Response> {
        let is_admin = match desk.site.kind {
            JiraKind::Cloud => basic_auth(&parts.headers)
                .is_some_and(|(email, token)| email == ADMIN_EMAIL && token == ADMIN_API_TOKEN),
            JiraKind::DataCenter(_) => {
                read_bearer_token(header_text(&parts.headers, "authorization")) == Some(ADMIN_API_TOKEN)
            }
        };
        if is_admin {
            return Ok(Self);
        }
        // A caller with other valid credentials gets 403, a caller without gets 401 from here.
        JiraCaller::from_request_parts(parts, desk).await?;
        let problem = "Only Jira administrators can manage webhooks.";
        Err(refuse_request(StatusCode::FORBIDDEN, problem))
    }
}

/// Registration for the Cloud and for Data Centers before release 10.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct HookRegistration {
    name: String,
    url: String,
    events: Vec<String>,
    filters: Value,
    exclude_body: bool,
    #[serde(default)]
    secret: String,
}

/// Registration for Data Centers since release 10.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct DataCenterRegistration {
    #[serde(default, rename = "id")]
    _id: Option<u64>,
    name: String,
    url: String,
    events: Vec<String>,
    active: bool,
    scope_type: String,
    configuration: HookConfiguration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HookConfiguration {
    #[serde(default, rename = "SECRET")]
    secret: String,
    #[serde(rename = "EXCLUDE_BODY")]
    exclude_body: String,
}

impl From<DataCenterRegistration> for HookRegistration {
    fn from(sent: DataCenterRegistration) -> Self {
        Self {
            name: sent.name,
            url: sent.url,
            events: sent.events,
            filters: json!({}),
            exclude_body: sent.configuration.exclude_body == "true"
                || !sent.active
                || sent.scope_type != "global",
            secret: sent.configuration.secret,
        }
    }
}

/// Registered webhook. Its JSON omits the secret.
pub(super) struct RegisteredHook {
    id: u64,
    sent: HookRegistration,
}

impl RegisteredHook {
    fn json(&self, site: &StandInSite) -> Value {
        let mut json = json!({
            "name": self.sent.name, "url": self.sent.url, "events": self.sent.events,
        });
        match site.kind {
            JiraKind::DataCenter(10..) => {
                json["id"] = json!(self.id);
                json["active"] = json!(true);
                json["configuration"] = json!({"EXCLUDE_BODY": self.sent.exclude_body.to_string()});
            }
            JiraKind::Cloud | JiraKind::DataCenter(_) => {
                json["filters"] = self.sent.filters.clone();
                json["excludeBody"] = json!(self.sent.exclude_body);
                json["enabled"] = json!(true);
                json["self"] = json!(format!("{site}/rest/webhooks/1.0/webhook/{}", self.id));
            }
        }
        json
    }
}

pub(super) async fn list_hooks(State(desk): State<Arc<JiraState>>, _admin: JiraAdministrator) -> Response {
    let hooks = desk.hooks.lock();
    let list = hooks.iter().map(|hook| hook.json(&desk.site)).collect();
    render_json_answer(StatusCode::OK, Value::Array(list))
}

pub(super) async fn create_hook(
    State(desk): State<Arc<JiraState>>,
    _admin: JiraAdministrator,
    body: axum::body::Bytes,
) -> JiraAnswer {
    let sent = read_registration(&desk.site, &body)?;
    let mut hooks = desk.hooks.lock();
    // Registrations are never deleted, so the count is a unique id.
    let id = hooks.len() as u64 + 1;
    let hook = RegisteredHook { id, sent };
    // The latest registration receives all deliveries.
    desk.webhooks.set_target(&hook.sent.url, &hook.sent.secret);
    let body = hook.json(&desk.site);
    hooks.push(hook);
    Ok(render_json_answer(StatusCode::CREATED, body))
}

pub(super) async fn update_hook(
    State(desk): State<Arc<JiraState>>,
    Path(id): Path<u64>,
    _admin: JiraAdministrator,
    body: axum::body::Bytes,
) -> JiraAnswer {
    let sent = read_registration(&desk.site, &body)?;
    let mut hooks = desk.hooks.lock();
    let known = hooks.iter_mut().find(|hook| hook.id == id);
    let known = known.ok_or_else(|| StatusCode::NOT_FOUND.into_response())?;
    desk.webhooks.set_target(&sent.url, &sent.secret);
    known.sent = sent;
    Ok(render_json_answer(StatusCode::OK, known.json(&desk.site)))
}

fn read_registration(site: &StandInSite, body: &axum::body::Bytes) -> Result<HookRegistration, Response> {
    let sent: HookRegistration = match site.kind {
        JiraKind::DataCenter(10..) => crate::http::parse_json::<DataCenterRegistration>(body)
            .map_err(render_bad_request)?
            .into(),
        JiraKind::Cloud | JiraKind::DataCenter(_) => {
            crate::http::parse_json(body).map_err(render_bad_request)?
        }
    };
    match sent.events.iter().find(|event| !EVENTS.contains(&event.as_str())) {
        Some(unknown) => Err(render_bad_request(format!("Unknown event {unknown}"))),
        None => Ok(sent),
    }
}

impl FakeJira {
    /// Target URL and issue filter of each registered webhook.
    #[must_use]
    pub fn registered_webhooks(&self) -> Vec<(String, String)> {
        let hooks = self.desk.hooks.lock();
        let filter = |hook: &RegisteredHook| {
            hook.sent.filters["issue-related-events-section"]
                .as_str()
                .map(str::to_owned)
        };
        let hooks = hooks.iter();
        hooks
            .map(|hook| (hook.sent.url.clone(), filter(hook).unwrap_or_default()))
            .collect()
    }
}

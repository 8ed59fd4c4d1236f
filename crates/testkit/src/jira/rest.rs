//! The REST interface, version 3: what Jira Cloud answers, and what it refuses.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::desk::Desk;
use super::extract::{Body, Caller, Read};
use super::state::{Comment, History, Issue};
use super::{adf, people, projects, search, transitions};
use crate::http::answer;

pub(super) type Handled = Result<Response, Response>;

pub(super) fn router(desk: Arc<Desk>) -> Router {
    let issue = Router::new()
        .route("/changelog", get(changelog))
        .route("/comment", get(list_comments).post(create_comment))
        .route("/comment/{id}", put(update_comment).delete(delete_comment))
        .route("/transitions", get(transitions::list).post(transitions::perform))
        .route("/remotelink", get(list_links).post(put_link))
        .route("/assignee", put(people::assign));
    Router::new()
        .route("/rest/api/3/myself", get(myself))
        .route("/rest/api/3/search/jql", post(search::search))
        .route("/rest/api/3/user/groups", get(people::groups))
        .route("/rest/api/3/mypermissions", get(projects::permissions))
        .route("/rest/api/3/project/{key}/statuses", get(projects::statuses))
        .route("/rest/api/3/issue/{key}", get(get_issue).put(people::edit))
        .nest("/rest/api/3/issue/{key}", issue)
        .fallback(unknown)
        .with_state(desk)
}

pub(super) fn refuse(status: StatusCode, message: &str) -> Response {
    answer(status, json!({"errorMessages": [message], "errors": {}}))
}

pub(super) fn missing() -> Response {
    refuse(
        StatusCode::NOT_FOUND,
        "Issue does not exist or you do not have permission to see it.",
    )
}

pub(super) fn bad(message: impl AsRef<str>) -> Response {
    refuse(StatusCode::BAD_REQUEST, message.as_ref())
}

async fn unknown(State(desk): State<Arc<Desk>>, request: Request) -> Response {
    desk.log.violation(format!(
        "Jira has no {} {}",
        request.method(),
        request.uri().path()
    ));
    refuse(StatusCode::NOT_FOUND, "null for uri")
}

async fn myself(caller: Caller) -> Response {
    answer(StatusCode::OK, caller.0.json())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IssueQuery {
    #[serde(default)]
    fields: String,
    #[serde(default)]
    expand: String,
}

async fn get_issue(Read { desk, issue }: Read, Query(query): Query<IssueQuery>) -> Handled {
    let names: Vec<String> = query
        .fields
        .split(',')
        .map(|name| name.trim().to_owned())
        .collect();
    let wanted = if query.fields.is_empty() {
        vec!["*all".to_owned()]
    } else {
        names
    };
    let mut body = issue_json(&desk, &issue, &wanted);
    if query.expand.split(',').any(|part| part == "changelog") {
        let histories: Vec<Value> = issue.histories.iter().rev().map(History::json).collect();
        body["changelog"] = json!({"startAt": 0, "maxResults": histories.len(), "total": histories.len(), "histories": histories});
    }
    Ok(answer(StatusCode::OK, body))
}

pub(super) fn issue_json(desk: &Desk, issue: &Issue, wanted: &[String]) -> Value {
    let mut body = json!({"id": issue.id.to_string(), "key": issue.key, "self": issue.link(&desk.url)});
    let all = wanted.iter().any(|name| name == "*all" || name == "*navigable");
    if let Value::Object(fields) = issue.fields(&desk.statuses) {
        let fields: Map<String, Value> = fields
            .into_iter()
            .filter(|(name, _)| all || wanted.contains(name))
            .collect();
        body["fields"] = Value::Object(fields);
    }
    body
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageQuery {
    #[serde(default)]
    start_at: usize,
    #[serde(default = "default_page")]
    max_results: usize,
    #[serde(default)]
    order_by: String,
}

pub(super) fn default_page() -> usize {
    50
}

impl PageQuery {
    fn page(&self, name: &str, items: &[Value]) -> Value {
        let limit = self.max_results.clamp(1, 100);
        let page: Vec<&Value> = items.iter().skip(self.start_at).take(limit).collect();
        let is_last = self.start_at + page.len() >= items.len();
        json!({
            "startAt": self.start_at, "maxResults": limit, "total": items.len(), "isLast": is_last, name: page,
        })
    }
}

async fn changelog(Read { issue, .. }: Read, Query(query): Query<PageQuery>) -> Handled {
    let histories: Vec<Value> = issue.histories.iter().map(History::json).collect();
    Ok(answer(StatusCode::OK, query.page("values", &histories)))
}

async fn list_comments(Read { desk, issue }: Read, Query(query): Query<PageQuery>) -> Handled {
    let listed = issue
        .comments
        .iter()
        .filter(|comment| desk.log.lists(comment.made));
    let mut comments: Vec<Value> = listed.map(Comment::json).collect();
    if query.order_by == "-created" {
        comments.reverse();
    }
    Ok(answer(StatusCode::OK, query.page("comments", &comments)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommentBody {
    body: Value,
    #[serde(default)]
    properties: Vec<Value>,
    #[serde(default, rename = "visibility")]
    _visibility: Option<Value>,
}

fn checked(desk: &Desk, comment: CommentBody) -> Result<CommentBody, Response> {
    adf::check(&comment.body).map_err(|problem| {
        desk.log.violation(format!("comment: {problem}"));
        answer(
            StatusCode::BAD_REQUEST,
            json!({"errorMessages": [], "errors": {"comment": format!("INVALID_INPUT: {problem}")}}),
        )
    })?;
    if comment
        .properties
        .iter()
        .any(|property| !property["key"].is_string() || property["value"].is_null())
    {
        return Err(bad("a property needs key and value"));
    }
    Ok(comment)
}

async fn create_comment(
    State(desk): State<Arc<Desk>>,
    caller: Caller,
    Path(key): Path<String>,
    Body(new): Body<CommentBody>,
) -> Handled {
    let new = checked(&desk, new)?;
    let comment = desk
        .add_comment(&key, &caller.0, new.body, new.properties)
        .ok_or_else(missing)?;
    Ok(answer(StatusCode::CREATED, comment.json()))
}

async fn update_comment(
    State(desk): State<Arc<Desk>>,
    caller: Caller,
    Path((key, id)): Path<(String, String)>,
    Body(new): Body<CommentBody>,
) -> Handled {
    let new = checked(&desk, new)?;
    let comment = desk
        .update_comment(&key, &id, &caller.0, new.body)
        .ok_or_else(missing)?;
    Ok(answer(StatusCode::OK, comment.json()))
}

async fn delete_comment(
    State(desk): State<Arc<Desk>>,
    _caller: Caller,
    Path((key, id)): Path<(String, String)>,
) -> Handled {
    desk.delete_comment(&key, &id).ok_or_else(missing)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn list_links(Read { issue, .. }: Read) -> Handled {
    let links: Vec<Value> = issue
        .links
        .iter()
        .map(|link| json!({"id": link.id, "globalId": link.global_id, "object": link.object}))
        .collect();
    Ok(answer(StatusCode::OK, Value::Array(links)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct LinkBody {
    #[serde(default)]
    global_id: String,
    object: Value,
    #[serde(default, rename = "relationship")]
    _relationship: Option<String>,
    #[serde(default, rename = "application")]
    _application: Option<Value>,
}

async fn put_link(
    State(desk): State<Arc<Desk>>,
    _caller: Caller,
    Path(key): Path<String>,
    Body(link): Body<LinkBody>,
) -> Handled {
    let complete = link.object["url"].is_string() && link.object["title"].is_string();
    if !complete || link.global_id.len() > 255 {
        return Err(bad(
            "object.url and object.title are required, globalId has at most 255 characters",
        ));
    }
    let (id, new) = desk
        .put_link(&key, &link.global_id, link.object)
        .ok_or_else(missing)?;
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    let own = format!("{}/rest/api/3/issue/{key}/remotelink/{id}", desk.url);
    Ok(answer(status, json!({"id": id, "self": own})))
}

//! REST routes of Jira Cloud (version 3) and Jira Data Center (version 2).

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use serde::Deserialize;
use serde_json::{Value, json};

use super::desk::Desk;
use super::extract::{Body, Caller, Read};
use super::state::{Issue, RemoteLink};
use super::{JiraKind, data_center, hooks, marks, people, projects, related, search, transitions};
use crate::http::answer;

pub(super) type Handled = Result<Response, Response>;

pub(super) fn router(desk: Arc<Desk>) -> Router {
    let issue = Router::new()
        .route("/comment", get(list_comments).post(create_comment))
        .route(
            "/comment/{id}",
            get(get_comment).put(update_comment).delete(delete_comment),
        )
        .route("/transitions", get(transitions::list).post(transitions::perform))
        .route("/remotelink", get(list_links).post(put_link))
        .route("/assignee", put(people::assign));
    let shared = Router::new()
        .route("/myself", get(myself))
        .route("/field", get(marks::fields))
        .route("/groups/picker", get(people::pick_groups))
        .route("/group/member", get(people::members))
        .route("/issueLink", post(related::create))
        .route("/issueLinkType", get(related::link_types))
        .route("/mypermissions", get(projects::permissions))
        .route("/project/{key}/statuses", get(projects::statuses))
        .route("/project/{key}/role", get(projects::roles))
        .route("/project/{key}/role/{id}", get(projects::role))
        .route("/issue/{key}", get(get_issue).put(people::edit))
        .nest("/issue/{key}", issue);
    let own = match desk.site.kind {
        JiraKind::Cloud => Router::new()
            .route("/search/jql", post(search::search))
            .route("/issue/{key}/changelog", get(changelog))
            .route("/user/groups", get(people::groups)),
        JiraKind::DataCenter(_) => data_center::rest(),
    };
    Router::new()
        .merge(hooks::router(&desk.site))
        .nest(desk.site.rest(), shared.merge(own))
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

async fn myself(State(desk): State<Arc<Desk>>, caller: Caller) -> Response {
    answer(StatusCode::OK, caller.0.own_json(&desk.site))
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
    // Without `fields` Jira returns all fields.
    let wanted = if query.fields.is_empty() {
        vec!["*all".to_owned()]
    } else {
        names
    };
    let mut body = issue_json(&desk, &issue, &wanted);
    if query.expand.split(',').any(|part| part == "names") {
        let own = body["fields"].as_object().into_iter().flatten();
        let named = own.map(|(id, _)| (id.clone(), desk.field_name(id).into()));
        body["names"] = Value::Object(named.collect());
    }
    if query.expand.split(',').any(|part| part == "changelog") {
        let mut histories: Vec<Value> = issue
            .histories
            .iter()
            .map(|history| history.json(&desk.site))
            .collect();
        // The Cloud lists histories newest first, a Data Center oldest first.
        if desk.site.is_cloud() {
            histories.reverse();
        }
        body["changelog"] = json!({"startAt": 0, "maxResults": histories.len(), "total": histories.len(), "histories": histories});
    }
    Ok(answer(StatusCode::OK, body))
}

pub(super) fn issue_json(desk: &Desk, issue: &Issue, wanted: &[String]) -> Value {
    let all = wanted.iter().any(|name| name == "*all" || name == "*navigable");
    let is_wanted = |name: &str| all || wanted.iter().any(|wanted| wanted == name);
    let mut body = issue.json(&desk.statuses, is_wanted, &desk.site);
    for (id, value) in desk.custom_fields(issue) {
        if is_wanted(&id) {
            body["fields"][&id] = value;
        }
    }
    for (name, value) in related::fields(desk, issue) {
        if is_wanted(name) {
            body["fields"][name] = value;
        }
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
    #[serde(default)]
    expand: String,
}

pub(super) fn default_page() -> usize {
    50
}

impl PageQuery {
    fn page(&self, name: &str, items: &[Value]) -> Value {
        let limit = self.max_results.clamp(1, 100);
        let page: Vec<&Value> = items.iter().skip(self.start_at).take(limit).collect();
        json!({"startAt": self.start_at, "maxResults": limit, "total": items.len(), name: page})
    }
}

/// Lists the changelog. In contrast to the page of comments, its page links to the next one.
async fn changelog(Read { desk, issue }: Read, Query(query): Query<PageQuery>) -> Handled {
    let histories = issue.histories.iter();
    let histories: Vec<Value> = histories.map(|history| history.json(&desk.site)).collect();
    let mut page = query.page("values", &histories);
    let next = query.start_at + page["values"].as_array().map_or(0, Vec::len);
    let own = |start: usize| {
        let limit = &page["maxResults"];
        format!(
            "{}{}/issue/{}/changelog?startAt={start}&maxResults={limit}",
            desk.site,
            desk.site.rest(),
            issue.key
        )
    };
    let (own, following) = (own(query.start_at), own(next));
    page["self"] = json!(own);
    page["isLast"] = json!(next >= histories.len());
    if next < histories.len() {
        page["nextPage"] = json!(following);
    }
    Ok(answer(StatusCode::OK, page))
}

async fn list_comments(Read { desk, issue }: Read, Query(query): Query<PageQuery>) -> Handled {
    let listed = issue
        .comments
        .iter()
        .filter(|comment| desk.log.lists(comment.made));
    let with_properties = query.expand.split(',').any(|part| part == "properties");
    let mut comments: Vec<Value> = listed
        .map(|comment| match with_properties {
            true => comment.json_with_properties(&desk.site),
            false => comment.json(&desk.site),
        })
        .collect();
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
    #[serde(default)]
    visibility: Option<Value>,
}

fn checked(desk: &Desk, comment: CommentBody) -> Result<CommentBody, Response> {
    desk.site.check(&comment.body).map_err(|problem| {
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
    Ok(answer(StatusCode::CREATED, comment.json(&desk.site)))
}

async fn get_comment(
    State(desk): State<Arc<Desk>>,
    _caller: Caller,
    Path((key, id)): Path<(String, String)>,
) -> Handled {
    let issue = desk.issue(&key).ok_or_else(missing)?;
    let found = issue.comments.iter().find(|comment| comment.id.to_string() == id);
    Ok(answer(
        StatusCode::OK,
        found.ok_or_else(missing)?.json(&desk.site),
    ))
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
    if !desk.site.is_cloud() {
        // A Data Center makes a comment public if the update omits the visibility.
        desk.show_comment_to(&key, &id, new.visibility);
    }
    Ok(answer(StatusCode::OK, comment.json(&desk.site)))
}

async fn delete_comment(
    State(desk): State<Arc<Desk>>,
    _caller: Caller,
    Path((key, id)): Path<(String, String)>,
) -> Handled {
    desk.delete_comment(&key, &id).ok_or_else(missing)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn list_links(Read { desk, issue }: Read) -> Handled {
    let links = issue.links.iter();
    let links = links.map(|link| link.json(&issue.key, &desk.site)).collect();
    Ok(answer(StatusCode::OK, links))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct LinkBody {
    #[serde(default)]
    global_id: String,
    object: Value,
    #[serde(default)]
    relationship: Option<String>,
    #[serde(default)]
    application: Option<Value>,
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
    let link = RemoteLink {
        // `put_link` assigns the id.
        id: 0,
        global_id: link.global_id,
        object: link.object,
        relationship: link.relationship,
        application: link.application,
    };
    let (link, is_new) = desk.put_link(&key, link).ok_or_else(missing)?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(answer(status, link.reference_json(&key, &desk.site)))
}

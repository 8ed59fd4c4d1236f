//! REST routes of Jira Cloud (version 3) and Jira Data Center (version 2).

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use serde::Deserialize;
use serde_json::{Value, json};

use super::desk::JiraState;
use super::extractors::{JiraCaller, JsonBody, ReadableIssue};
use super::state::{RemoteLink, TicketRecord};
use super::{
    JiraKind, attachments, data_center, hooks, issue_links, people, projects, search, ticket_fields,
    transitions,
};
use crate::http::render_json_answer;

pub(super) type JiraAnswer = Result<Response, Response>;

pub(super) fn build_jira_routes(desk: Arc<JiraState>) -> Router {
    let issue = Router::new()
        .route("/comment", get(list_comments).post(create_comment))
        .route(
            "/comment/{id}",
            get(get_comment).put(update_comment).delete(delete_comment),
        )
        .route(
            "/transitions",
            get(transitions::list_transitions).post(transitions::perform_transition),
        )
        .route("/remotelink", get(list_links).post(put_link))
        .route("/assignee", put(people::assign_issue));
    let shared = Router::new()
        .route("/myself", get(get_myself))
        .route("/field", get(ticket_fields::list_fields))
        .route("/groups/picker", get(people::pick_groups))
        .route("/group/member", get(people::list_group_members))
        .route("/issueLink", post(issue_links::create_issue_link))
        .route("/issueLinkType", get(issue_links::link_types))
        .route("/mypermissions", get(projects::list_permissions))
        .route("/project/{key}/statuses", get(projects::list_project_statuses))
        .route("/project/{key}/role", get(projects::list_roles))
        .route("/project/{key}/role/{id}", get(projects::get_role))
        .route("/issue/{key}", get(get_issue).put(people::edit_issue))
        .nest("/issue/{key}", issue);
    let own = match desk.site.kind {
        JiraKind::Cloud => Router::new()
            .route("/search/jql", post(search::search_issues))
            .route("/project/search", get(projects::search_projects))
            .route("/issue/{key}/changelog", get(list_changelog))
            .route("/user/groups", get(people::list_user_groups))
            .route("/attachment/content/{id}", get(attachments::redirect_to_media)),
        JiraKind::DataCenter(_) => data_center::build_rest_routes(),
    };
    Router::new()
        .merge(hooks::build_hook_routes(&desk.site))
        .merge(attachments::build_file_routes(&desk.site))
        .nest(desk.site.rest(), shared.merge(own))
        .fallback(answer_unknown_route)
        .with_state(desk)
}

pub(super) fn refuse_request(status: StatusCode, message: &str) -> Response {
    render_json_answer(status, json!({"errorMessages": [message], "errors": {}}))
}

pub(super) fn render_missing_issue() -> Response {
    refuse_request(
        StatusCode::NOT_FOUND,
        "Issue does not exist or you do not have permission to see it.",
    )
}

pub(super) fn render_bad_request(message: impl AsRef<str>) -> Response {
    refuse_request(StatusCode::BAD_REQUEST, message.as_ref())
}

async fn answer_unknown_route(State(desk): State<Arc<JiraState>>, request: Request) -> Response {
    desk.log.violation(format!(
        "Jira has no {} {}",
        request.method(),
        request.uri().path()
    ));
    refuse_request(StatusCode::NOT_FOUND, "null for uri")
}

async fn get_myself(State(desk): State<Arc<JiraState>>, caller: JiraCaller) -> Response {
    render_json_answer(StatusCode::OK, caller.0.own_json(&desk.site))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IssueQuery {
    #[serde(default)]
    fields: String,
    #[serde(default)]
    expand: String,
}

async fn get_issue(
    ReadableIssue { desk, issue }: ReadableIssue,
    Query(query): Query<IssueQuery>,
) -> JiraAnswer {
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
    Ok(render_json_answer(StatusCode::OK, body))
}

pub(super) fn issue_json(desk: &JiraState, issue: &TicketRecord, wanted: &[String]) -> Value {
    let all = wanted.iter().any(|name| name == "*all" || name == "*navigable");
    let is_wanted = |name: &str| all || wanted.iter().any(|wanted| wanted == name);
    let mut body = issue.json(&desk.statuses, is_wanted, &desk.site);
    for (id, value) in desk.custom_fields(issue) {
        if is_wanted(&id) {
            body["fields"][&id] = value;
        }
    }
    for (name, value) in issue_links::render_link_fields(desk, issue) {
        if is_wanted(name) {
            body["fields"][name] = value;
        }
    }
    body
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JiraPageQuery {
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

impl JiraPageQuery {
    fn page(&self, name: &str, items: &[Value]) -> Value {
        let limit = self.max_results.clamp(1, 100);
        let page: Vec<&Value> = items.iter().skip(self.start_at).take(limit).collect();
        json!({"startAt": self.start_at, "maxResults": limit, "total": items.len(), name: page})
    }
}

/// Lists the changelog. In contrast to the page of comments, its page links to the next one.
async fn list_changelog(
    ReadableIssue { desk, issue }: ReadableIssue,
    Query(query): Query<JiraPageQuery>,
) -> JiraAnswer {
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
    Ok(render_json_answer(StatusCode::OK, page))
}

async fn list_comments(
    ReadableIssue { desk, issue }: ReadableIssue,
    Query(query): Query<JiraPageQuery>,
) -> JiraAnswer {
    let listed = issue
        .comments
        .iter()
        .filter(|comment| desk.log.lists(comment.made));
    let with_properties = query.expand.split(',').any(|part| part == "properties");
    let mut comments: Vec<Value> = listed
        .map(|comment| {
            if with_properties {
                comment.json_with_properties(&desk.site)
            } else {
                comment.json(&desk.site)
            }
        })
        .collect();
    if query.order_by == "-created" {
        comments.reverse();
    }
    Ok(render_json_answer(
        StatusCode::OK,
        query.page("comments", &comments),
    ))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JiraCommentBody {
    body: Value,
    #[serde(default)]
    properties: Vec<Value>,
    #[serde(default)]
    visibility: Option<Value>,
}

fn validate_comment(desk: &JiraState, comment: JiraCommentBody) -> Result<JiraCommentBody, Response> {
    desk.site.check(&comment.body).map_err(|problem| {
        desk.log.violation(format!("comment: {problem}"));
        render_json_answer(
            StatusCode::BAD_REQUEST,
            json!({"errorMessages": [], "errors": {"comment": format!("INVALID_INPUT: {problem}")}}),
        )
    })?;
    if comment
        .properties
        .iter()
        .any(|property| !property["key"].is_string() || property["value"].is_null())
    {
        return Err(render_bad_request("a property needs key and value"));
    }
    Ok(comment)
}

async fn create_comment(
    State(desk): State<Arc<JiraState>>,
    caller: JiraCaller,
    Path(key): Path<String>,
    JsonBody(new): JsonBody<JiraCommentBody>,
) -> JiraAnswer {
    let new = validate_comment(&desk, new)?;
    let comment = desk
        .add_comment(&key, &caller.0, new.body, new.properties)
        .ok_or_else(render_missing_issue)?;
    Ok(render_json_answer(StatusCode::CREATED, comment.json(&desk.site)))
}

async fn get_comment(
    State(desk): State<Arc<JiraState>>,
    _caller: JiraCaller,
    Path((key, id)): Path<(String, String)>,
) -> JiraAnswer {
    let issue = desk.issue(&key).ok_or_else(render_missing_issue)?;
    let found = issue.comments.iter().find(|comment| comment.id.to_string() == id);
    Ok(render_json_answer(
        StatusCode::OK,
        found.ok_or_else(render_missing_issue)?.json(&desk.site),
    ))
}

async fn update_comment(
    State(desk): State<Arc<JiraState>>,
    caller: JiraCaller,
    Path((key, id)): Path<(String, String)>,
    JsonBody(new): JsonBody<JiraCommentBody>,
) -> JiraAnswer {
    let new = validate_comment(&desk, new)?;
    let comment = desk
        .update_comment(&key, &id, &caller.0, new.body)
        .ok_or_else(render_missing_issue)?;
    if !desk.site.is_cloud() {
        // A Data Center makes a comment public if the update omits the visibility.
        desk.show_comment_to(&key, &id, new.visibility);
    }
    Ok(render_json_answer(StatusCode::OK, comment.json(&desk.site)))
}

async fn delete_comment(
    State(desk): State<Arc<JiraState>>,
    _caller: JiraCaller,
    Path((key, id)): Path<(String, String)>,
) -> JiraAnswer {
    desk.delete_comment(&key, &id).ok_or_else(render_missing_issue)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn list_links(ReadableIssue { desk, issue }: ReadableIssue) -> JiraAnswer {
    let links = issue.links.iter();
    let links = links.map(|link| link.json(&issue.key, &desk.site)).collect();
    Ok(render_json_answer(StatusCode::OK, links))
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
    State(desk): State<Arc<JiraState>>,
    _caller: JiraCaller,
    Path(key): Path<String>,
    JsonBody(link): JsonBody<LinkBody>,
) -> JiraAnswer {
    let complete = link.object["url"].is_string() && link.object["title"].is_string();
    if !complete || link.global_id.len() > 255 {
        return Err(render_bad_request(
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
    let (link, is_new) = desk.put_link(&key, link).ok_or_else(render_missing_issue)?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(render_json_answer(status, link.reference_json(&key, &desk.site)))
}

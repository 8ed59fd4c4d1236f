//! REST routes of ticket edits, assignees, groups and users.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::desk::JiraState;
use super::extractors::{JiraCaller, JsonBody};
use super::rest::{JiraAnswer, refuse_request, render_bad_request, render_missing_issue};
use super::shape;
use super::state::{JiraAccount, PRIORITIES, TYPES, TicketRecord};
use crate::http::render_json_answer;

/// Edits a ticket. The stand-in supports `update.labels` with `add`, and `fields` with labels, summary,
/// priority and type.
pub(super) async fn edit_issue(
    State(desk): State<Arc<JiraState>>,
    caller: JiraCaller,
    Path(key): Path<String>,
    JsonBody(body): JsonBody<Value>,
) -> JiraAnswer {
    let fields = body["fields"].as_object().into_iter().flatten();
    for (name, value) in fields {
        set_field(&desk, &key, (name, value), &caller.0)?;
    }
    if body["update"].is_null() && body["fields"].is_object() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let changes = body["update"]["labels"]
        .as_array()
        .ok_or_else(|| render_bad_request("update.labels is missing"))?;
    let mut labels = desk.issue(&key).ok_or_else(render_missing_issue)?.labels;
    for change in changes {
        let label = change["add"]
            .as_str()
            .ok_or_else(|| render_bad_request("add is missing"))?;
        if label.contains(' ') {
            return Err(render_bad_request("The label can't contain spaces."));
        }
        if !labels.iter().any(|known| known == label) {
            labels.push(label.to_owned());
        }
    }
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    desk.set_labels(&key, &labels, &caller.0)
        .ok_or_else(render_missing_issue)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn set_field(
    desk: &JiraState,
    key: &str,
    (name, value): (&str, &Value),
    by: &JiraAccount,
) -> Result<(), Response> {
    match (name, value) {
        ("labels", Value::Array(labels)) => {
            let labels: Vec<&str> = labels.iter().filter_map(Value::as_str).collect();
            if labels.iter().any(|label| label.contains(' ')) {
                return Err(render_bad_request("The label can't contain spaces."));
            }
            desk.set_labels(key, &labels, by)
                .map(drop)
                .ok_or_else(render_missing_issue)
        }
        ("summary", Value::String(summary)) => desk
            .edit_summary(key, summary, by)
            .map(drop)
            .ok_or_else(render_missing_issue),
        ("priority", value) => {
            let known = PRIORITIES.iter().find(|known| value["name"] == **known);
            let known = known.ok_or_else(|| wrong_field("priority", "The priority selected is invalid."))?;
            let change = |issue: &mut TicketRecord| {
                let before = std::mem::replace(&mut issue.priority, known);
                (before.to_owned(), (*known).to_owned())
            };
            desk.sort(key, "priority", by, change)
                .ok_or_else(render_missing_issue)
        }
        ("issuetype", value) => {
            let known = TYPES.iter().find(|known| value["name"] == **known);
            let known =
                known.ok_or_else(|| wrong_field("issuetype", "The issue type selected is invalid."))?;
            let change = |issue: &mut TicketRecord| {
                let before = std::mem::replace(&mut issue.kind, (*known).to_owned());
                (before, (*known).to_owned())
            };
            desk.sort(key, "issuetype", by, change)
                .ok_or_else(render_missing_issue)
        }
        _ => Err(render_bad_request(format!("Field '{name}' cannot be set."))),
    }
}

fn wrong_field(name: &str, problem: &str) -> Response {
    render_json_answer(
        StatusCode::BAD_REQUEST,
        json!({"errorMessages": [], "errors": {name: problem}}),
    )
}

/// Assigns a ticket to a known account, or removes the assignee. `-1`, the project's default assignee, is not
/// supported.
pub(super) async fn assign_issue(
    State(desk): State<Arc<JiraState>>,
    caller: JiraCaller,
    Path(key): Path<String>,
    JsonBody(body): JsonBody<Value>,
) -> JiraAnswer {
    let field = desk.site.account_field();
    let to = match body.get(field) {
        Some(Value::Null) => None,
        Some(Value::String(id)) => {
            let known = desk.account(&desk.site.id(id));
            let unknown = || render_bad_request(format!("The user '{id}' does not exist."));
            Some(known.ok_or_else(unknown)?)
        }
        _ => {
            desk.log.violation(format!("an assignee without {field}: {body}"));
            return Err(render_bad_request(format!("{field} must be an account or null")));
        }
    };
    desk.assign(&key, to, &caller.0)
        .ok_or_else(render_missing_issue)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupsQuery {
    account_id: String,
}

pub(super) async fn list_user_groups(
    State(desk): State<Arc<JiraState>>,
    _caller: JiraCaller,
    Query(query): Query<GroupsQuery>,
) -> JiraAnswer {
    let groups: Vec<Value> = desk
        .groups(&query.account_id)
        .into_iter()
        .map(|name| shape::render_group(&name, &desk.site))
        .collect();
    Ok(render_json_answer(StatusCode::OK, Value::Array(groups)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct PickerQuery {
    #[serde(default)]
    query: String,
    #[serde(default = "default_groups")]
    max_results: usize,
}

const fn default_groups() -> usize {
    20
}

/// Lists groups by a part of their names. A caller without the permission to browse gets an empty list.
pub(super) async fn pick_groups(
    State(desk): State<Arc<JiraState>>,
    caller: JiraCaller,
    Query(query): Query<PickerQuery>,
) -> JiraAnswer {
    let part = query.query.to_lowercase();
    let is_shown = !desk.is_withheld(&caller.0, "USER_PICKER");
    let all = desk.all_groups().into_iter().filter(|_| is_shown);
    let found: Vec<String> = all.filter(|name| name.to_lowercase().contains(&part)).collect();
    let groups: Vec<Value> = found
        .iter()
        .take(query.max_results)
        .map(|name| {
            let mut group = json!({"name": name, "html": name, "labels": []});
            if desk.site.is_cloud() {
                group["groupId"] = shape::render_group(name, &desk.site)["groupId"].clone();
            }
            group
        })
        .collect();
    let header = format!("Showing {} of {} matching groups", groups.len(), found.len());
    Ok(render_json_answer(
        StatusCode::OK,
        json!({"header": header, "total": found.len(), "groups": groups}),
    ))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct MembersQuery {
    groupname: String,
    #[serde(default = "default_members")]
    max_results: usize,
}

const fn default_members() -> usize {
    50
}

/// Lists the accounts in a group.
pub(super) async fn list_group_members(
    State(desk): State<Arc<JiraState>>,
    _caller: JiraCaller,
    Query(query): Query<MembersQuery>,
) -> JiraAnswer {
    let name = &query.groupname;
    if !desk.all_groups().contains(name) {
        let problem = format!("Group '{name}' does not exist.");
        return Err(refuse_request(StatusCode::NOT_FOUND, &problem));
    }
    let members = desk.members(name);
    let values = members.iter().take(query.max_results);
    let values: Vec<Value> = values.map(|member| member.json(&desk.site)).collect();
    let page = format!("{}{}/group/member?groupname={name}", desk.site, desk.site.rest());
    Ok(render_json_answer(
        StatusCode::OK,
        json!({"self": page, "maxResults": query.max_results, "startAt": 0, "total": members.len(),
            "isLast": values.len() == members.len(), "values": values}),
    ))
}

#[derive(Deserialize)]
pub(super) struct UserQuery {
    username: Option<String>,
    key: Option<String>,
    #[serde(default)]
    expand: String,
}

/// Answers with a user of a Data Center by name or key, and with the groups if `expand` requests them.
pub(super) async fn get_user(
    State(desk): State<Arc<JiraState>>,
    _caller: JiraCaller,
    Query(query): Query<UserQuery>,
) -> JiraAnswer {
    let named = query.username.clone().map(|name| desk.site.id(&name));
    let keyed = || JiraAccount::name_of_key(query.key.as_deref()?);
    let account = match &named {
        Some(id) => desk.account(id),
        None => keyed().map(|name| {
            desk.account(&desk.site.id(&name))
                .unwrap_or_else(|| JiraAccount::person(&name))
        }),
    };
    let unknown = || refuse_request(StatusCode::NOT_FOUND, "The user does not exist.");
    let account = account.ok_or_else(unknown)?;
    let mut user = account.json(&desk.site);
    let groups = desk.groups(&account.id).into_iter();
    let groups: Vec<Value> = groups
        .map(|name| shape::render_group(&name, &desk.site))
        .collect();
    let size = groups.len();
    let items = if query.expand == "groups" {
        groups
    } else {
        Vec::new()
    };
    user["groups"] = json!({"size": size, "items": items});
    Ok(render_json_answer(StatusCode::OK, user))
}

//! REST routes of projects: statuses, permissions and roles.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::desk::JiraState;
use super::extractors::{JiraCaller, create_writer_account};
use super::rest::{JiraAnswer, refuse_request, render_bad_request};
use super::shape;
use crate::http::render_json_answer;

fn render_missing_project(project: &str) -> Response {
    refuse_request(
        StatusCode::NOT_FOUND,
        &format!("No project could be found with key '{project}'."),
    )
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ProjectsQuery {
    max_results: usize,
}

fn render_projects(desk: &JiraState) -> Vec<Value> {
    let keys = desk.list_projects().into_iter();
    keys.map(|key| shape::render_project(&key, &desk.site)).collect()
}

/// Answers with the first page of all projects, as the Cloud does.
pub(super) async fn search_projects(
    State(desk): State<Arc<JiraState>>,
    _caller: JiraCaller,
    Query(query): Query<ProjectsQuery>,
) -> Response {
    let mut projects = render_projects(&desk);
    let total = projects.len();
    // Jira Cloud returns at most 100 projects in a page.
    let most = query.max_results.min(100);
    projects.truncate(most);
    let body = json!({
        "self": format!("{}{}/project/search?maxResults={most}", desk.site, desk.site.rest()),
        "startAt": 0, "maxResults": most, "total": total, "isLast": projects.len() == total, "values": projects,
    });
    render_json_answer(StatusCode::OK, body)
}

/// Answers with all projects, as a Data Center does.
pub(super) async fn list_projects(State(desk): State<Arc<JiraState>>, _caller: JiraCaller) -> Response {
    render_json_answer(StatusCode::OK, Value::Array(render_projects(&desk)))
}

pub(super) async fn list_project_statuses(
    State(desk): State<Arc<JiraState>>,
    _caller: JiraCaller,
    Path(project): Path<String>,
) -> JiraAnswer {
    if !desk.has_project(&project) {
        return Err(render_missing_project(&project));
    }
    let statuses = desk.statuses.iter().enumerate();
    let statuses: Vec<Value> = statuses
        .map(|(index, status)| status.json(index, &desk.site))
        .collect();
    // The stand-in lists the workflow of the type `Task` alone.
    let task = shape::issue_type("Task", &desk.site);
    let mut of_task = json!({"statuses": statuses});
    for name in ["self", "id", "name", "subtask"] {
        of_task[name] = task[name].clone();
    }
    Ok(render_json_answer(StatusCode::OK, json!([of_task])))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionsQuery {
    project_key: String,
    permissions: Option<String>,
}

/// Permissions that neither account has by default.
const OTHERS: [&str; 4] = [
    "CREATE_ISSUES",
    "DELETE_ISSUES",
    "ADMINISTER_PROJECTS",
    "ADMINISTER",
];
/// Default permissions of the two accounts.
const READER: [&str; 2] = ["BROWSE_PROJECTS", "USER_PICKER"];
const WRITER: [&str; 8] = [
    "BROWSE_PROJECTS",
    "ADD_COMMENTS",
    "EDIT_OWN_COMMENTS",
    "DELETE_OWN_COMMENTS",
    "TRANSITION_ISSUES",
    "LINK_ISSUES",
    "EDIT_ISSUES",
    "ASSIGN_ISSUES",
];

pub(super) async fn list_permissions(
    State(desk): State<Arc<JiraState>>,
    JiraCaller(account): JiraCaller,
    Query(query): Query<PermissionsQuery>,
) -> JiraAnswer {
    if !desk.has_project(&query.project_key) {
        return Err(render_missing_project(&query.project_key));
    }
    let held = |key: &str| {
        let usual: &[&str] = if account == create_writer_account() {
            &WRITER
        } else {
            &READER
        };
        desk.is_granted(&account, key) || (usual.contains(&key) && !desk.is_withheld(&account, key))
    };
    let known = || [&READER[..], &WRITER, &OTHERS].concat().join(",");
    // The Cloud requires the list of permissions and a Data Center ignores it and returns all of them.
    let asked = match (desk.site.is_cloud(), query.permissions) {
        (true, Some(asked)) => asked,
        (true, None) => return Err(render_bad_request("The permissions must be named.")),
        (false, None) => known(),
        (false, Some(asked)) => {
            desk.log
                .violation(format!("a Data Center was asked for {asked} alone"));
            known()
        }
    };
    let found: Map<String, Value> = asked
        .split(',')
        .map(|key| (key.to_owned(), shape::render_permission(key, held(key))))
        .collect();
    Ok(render_json_answer(StatusCode::OK, json!({"permissions": found})))
}

/// Id of the role `Developers` in every project.
const DEVELOPERS: u64 = 10_001;

/// Checks the permission that Jira requires for both routes of roles.
fn may_administer(desk: &JiraState, caller: &JiraCaller, project: &str) -> Result<(), Response> {
    let may = desk.has_project(project) && !desk.is_withheld(&caller.0, "ADMINISTER_PROJECTS");
    if may {
        Ok(())
    } else {
        Err(render_missing_project(project))
    }
}

fn role_link(desk: &JiraState, project: &str) -> String {
    format!(
        "{}{}/project/{project}/role/{DEVELOPERS}",
        desk.site,
        desk.site.rest()
    )
}

pub(super) async fn list_roles(
    State(desk): State<Arc<JiraState>>,
    caller: JiraCaller,
    Path(project): Path<String>,
) -> JiraAnswer {
    may_administer(&desk, &caller, &project)?;
    Ok(render_json_answer(
        StatusCode::OK,
        json!({"Developers": role_link(&desk, &project)}),
    ))
}

pub(super) async fn get_role(
    State(desk): State<Arc<JiraState>>,
    caller: JiraCaller,
    Path((project, id)): Path<(String, u64)>,
) -> JiraAnswer {
    may_administer(&desk, &caller, &project)?;
    if id != DEVELOPERS {
        return Err(render_missing_project(&project));
    }
    let developers = desk.developers();
    let people = developers.people.iter().map(|account| {
        if !desk.site.is_cloud() {
            return json!({"id": 10_240, "displayName": account.name, "type": "atlassian-user-role-actor",
                "name": account.user_name()});
        }
        json!({"id": 10_240, "displayName": account.name, "type": "atlassian-user-role-actor",
            "actorUser": {"accountId": account.id}})
    });
    let groups = developers.groups.iter().map(|name| {
        if !desk.site.is_cloud() {
            return json!({"id": 10_241, "displayName": name, "type": "atlassian-group-role-actor", "name": name});
        }
        json!({"id": 10_241, "displayName": name, "type": "atlassian-group-role-actor",
            "actorGroup": {"name": name, "displayName": name, "groupId": format!("group-{name}")}})
    });
    let actors: Vec<Value> = people.chain(groups).collect();
    Ok(render_json_answer(
        StatusCode::OK,
        json!({
            "self": role_link(&desk, &project), "name": "Developers", "id": DEVELOPERS,
            "description": "People who change the code", "actors": actors,
            "scope": {"type": "PROJECT", "project": {"id": "10000"}},
        }),
    ))
}

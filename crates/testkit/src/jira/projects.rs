//! REST routes of projects: statuses, permissions and roles.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::desk::Desk;
use super::extract::{Caller, writer};
use super::rest::{Handled, bad, refuse};
use super::shape;
use crate::http::answer;

fn missing(project: &str) -> Response {
    refuse(
        StatusCode::NOT_FOUND,
        &format!("No project could be found with key '{project}'."),
    )
}

pub(super) async fn statuses(
    State(desk): State<Arc<Desk>>,
    _caller: Caller,
    Path(project): Path<String>,
) -> Handled {
    if !desk.has_project(&project) {
        return Err(missing(&project));
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
    Ok(answer(StatusCode::OK, json!([of_task])))
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

pub(super) async fn permissions(
    State(desk): State<Arc<Desk>>,
    Caller(account): Caller,
    Query(query): Query<PermissionsQuery>,
) -> Handled {
    if !desk.has_project(&query.project_key) {
        return Err(missing(&query.project_key));
    }
    let held = |key: &str| {
        let usual: &[&str] = if account == writer() { &WRITER } else { &READER };
        desk.is_granted(&account, key) || (usual.contains(&key) && !desk.is_withheld(&account, key))
    };
    let known = || [&READER[..], &WRITER, &OTHERS].concat().join(",");
    // The Cloud requires the list of permissions and a Data Center ignores it and returns all of them.
    let asked = match (desk.site.is_cloud(), query.permissions) {
        (true, Some(asked)) => asked,
        (true, None) => return Err(bad("The permissions must be named.")),
        (false, None) => known(),
        (false, Some(asked)) => {
            desk.log
                .violation(format!("a Data Center was asked for {asked} alone"));
            known()
        }
    };
    let found: Map<String, Value> = asked
        .split(',')
        .map(|key| (key.to_owned(), shape::permission(key, held(key))))
        .collect();
    Ok(answer(StatusCode::OK, json!({"permissions": found})))
}

/// Id of the role `Developers` in every project.
const DEVELOPERS: u64 = 10_001;

/// Checks the permission that Jira requires for both routes of roles.
fn may_administer(desk: &Desk, caller: &Caller, project: &str) -> Result<(), Response> {
    let may = desk.has_project(project) && !desk.is_withheld(&caller.0, "ADMINISTER_PROJECTS");
    if may { Ok(()) } else { Err(missing(project)) }
}

fn role_link(desk: &Desk, project: &str) -> String {
    format!(
        "{}{}/project/{project}/role/{DEVELOPERS}",
        desk.site,
        desk.site.rest()
    )
}

pub(super) async fn roles(
    State(desk): State<Arc<Desk>>,
    caller: Caller,
    Path(project): Path<String>,
) -> Handled {
    may_administer(&desk, &caller, &project)?;
    Ok(answer(
        StatusCode::OK,
        json!({"Developers": role_link(&desk, &project)}),
    ))
}

pub(super) async fn role(
    State(desk): State<Arc<Desk>>,
    caller: Caller,
    Path((project, id)): Path<(String, u64)>,
) -> Handled {
    may_administer(&desk, &caller, &project)?;
    if id != DEVELOPERS {
        return Err(missing(&project));
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
    Ok(answer(
        StatusCode::OK,
        json!({
            "self": role_link(&desk, &project), "name": "Developers", "id": DEVELOPERS,
            "description": "People who change the code", "actors": actors,
            "scope": {"type": "PROJECT", "project": {"id": "10000"}},
        }),
    ))
}

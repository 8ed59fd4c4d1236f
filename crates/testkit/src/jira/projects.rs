//! Projects over the REST interface: their statuses and who plays which role.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::desk::{Desk, Role};
use super::extract::{Caller, writer};
use super::rest::{Handled, refuse};
use crate::http::answer;

/// The id of the first role; the others follow.
const FIRST_ROLE: usize = 10_100;

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
    let statuses: Vec<Value> = statuses.map(|(index, status)| status.json(index)).collect();
    let own = format!("{}/rest/api/3/issuetype/10001", desk.url);
    let task = json!({"id": "10001", "name": "Task", "self": own, "subtask": false, "statuses": statuses});
    Ok(answer(StatusCode::OK, json!([task])))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionsQuery {
    project_key: String,
    permissions: String,
}

pub(super) async fn permissions(
    State(desk): State<Arc<Desk>>,
    Caller(account): Caller,
    Query(query): Query<PermissionsQuery>,
) -> Handled {
    if !desk.has_project(&query.project_key) {
        return Err(missing(&query.project_key));
    }
    let held = |key: &str| {
        let reads = matches!(key, "BROWSE_PROJECTS" | "USER_PICKER");
        (reads || account == writer()) && !desk.is_withheld(&account, key)
    };
    let found: Map<String, Value> = query
        .permissions
        .split(',')
        .map(|key| {
            let permission = json!({
                "id": "1", "key": key, "name": key, "type": "PROJECT", "description": "", "havePermission": held(key),
            });
            (key.to_owned(), permission)
        })
        .collect();
    Ok(answer(StatusCode::OK, json!({"permissions": found})))
}

fn address(desk: &Desk, project: &str, index: usize) -> String {
    format!(
        "{}/rest/api/3/project/{project}/role/{}",
        desk.url,
        FIRST_ROLE + index
    )
}

pub(super) async fn roles(
    State(desk): State<Arc<Desk>>,
    _caller: Caller,
    Path(project): Path<String>,
) -> Handled {
    if !desk.has_project(&project) {
        return Err(missing(&project));
    }
    let roles = desk.roles(&project).into_iter().enumerate();
    let named: Map<String, Value> = roles
        .map(|(index, role)| (role.name, address(&desk, &project, index).into()))
        .collect();
    Ok(answer(StatusCode::OK, Value::Object(named)))
}

pub(super) async fn role(
    State(desk): State<Arc<Desk>>,
    _caller: Caller,
    Path((project, id)): Path<(String, usize)>,
) -> Handled {
    let index = id.checked_sub(FIRST_ROLE);
    let found = index.and_then(|index| desk.roles(&project).into_iter().nth(index).zip(Some(index)));
    let Some((role, index)) = found else {
        return Err(refuse(
            StatusCode::NOT_FOUND,
            "The project role was not found in this project.",
        ));
    };
    let body = json!({
        "self": address(&desk, &project, index), "id": id, "name": role.name, "description": "",
        "actors": actors(&role),
    });
    Ok(answer(StatusCode::OK, body))
}

fn actors(role: &Role) -> Vec<Value> {
    let people = role.people.iter().map(|account| {
        json!({
            "displayName": account.name, "type": "atlassian-user-role-actor",
            "actorUser": {"accountId": account.id},
        })
    });
    let groups = role.groups.iter().map(|name| {
        json!({
            "displayName": name, "type": "atlassian-group-role-actor", "name": name,
            "actorGroup": {"name": name, "displayName": name, "groupId": format!("id-{name}")},
        })
    });
    let numbered = people.chain(groups).zip(10_240..);
    numbered
        .map(|(mut actor, id)| {
            actor["id"] = id.into();
            actor
        })
        .collect()
}

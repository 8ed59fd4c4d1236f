//! Projects over the REST interface: their statuses and what an account may do there.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::desk::Desk;
use super::extract::{Caller, writer};
use super::rest::{Handled, refuse};
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
        .map(|(index, status)| status.json(index, &desk.url))
        .collect();
    let task = shape::issue_type("Task", &desk.url);
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
        .map(|key| (key.to_owned(), shape::permission(key, held(key))))
        .collect();
    Ok(answer(StatusCode::OK, json!({"permissions": found})))
}

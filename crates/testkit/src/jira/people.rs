//! Assignees, labels and groups over the REST interface.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::Value;

use super::desk::Desk;
use super::extract::{Body, Caller};
use super::rest::{Handled, bad, missing};
use super::shape;
use super::state::Account;
use crate::http::answer;

/// Only `update.labels` with `add`, and `fields` with labels and a summary, are known here.
pub(super) async fn edit(
    State(desk): State<Arc<Desk>>,
    caller: Caller,
    Path(key): Path<String>,
    Body(body): Body<Value>,
) -> Handled {
    let fields = body["fields"].as_object().into_iter().flatten();
    for (name, value) in fields {
        set_field(&desk, &key, (name, value), &caller.0)?;
    }
    if body["update"].is_null() && body["fields"].is_object() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let changes = body["update"]["labels"]
        .as_array()
        .ok_or_else(|| bad("update.labels is missing"))?;
    let mut labels = desk.issue(&key).ok_or_else(missing)?.labels;
    for change in changes {
        let label = change["add"].as_str().ok_or_else(|| bad("add is missing"))?;
        if label.contains(' ') {
            return Err(bad("The label can't contain spaces."));
        }
        if !labels.iter().any(|known| known == label) {
            labels.push(label.to_owned());
        }
    }
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    desk.set_labels(&key, &labels, &caller.0).ok_or_else(missing)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn set_field(desk: &Desk, key: &str, (name, value): (&str, &Value), by: &Account) -> Result<(), Response> {
    match (name, value) {
        ("labels", Value::Array(labels)) => {
            let labels: Vec<&str> = labels.iter().filter_map(Value::as_str).collect();
            if labels.iter().any(|label| label.contains(' ')) {
                return Err(bad("The label can't contain spaces."));
            }
            desk.set_labels(key, &labels, by).map(drop).ok_or_else(missing)
        }
        ("summary", Value::String(summary)) => {
            desk.edit_summary(key, summary, by).map(drop).ok_or_else(missing)
        }
        _ => Err(bad(format!("Field '{name}' cannot be set."))),
    }
}

/// Only taking the assignee away is known here.
pub(super) async fn assign(
    State(desk): State<Arc<Desk>>,
    caller: Caller,
    Path(key): Path<String>,
    Body(body): Body<Value>,
) -> Handled {
    if body.get("accountId") != Some(&Value::Null) {
        return Err(bad("accountId must be null here"));
    }
    desk.assign(&key, None, &caller.0).ok_or_else(missing)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupsQuery {
    account_id: String,
}

pub(super) async fn groups(
    State(desk): State<Arc<Desk>>,
    _caller: Caller,
    Query(query): Query<GroupsQuery>,
) -> Handled {
    let groups: Vec<Value> = desk
        .groups(&query.account_id)
        .into_iter()
        .map(|name| shape::group(&name, &desk.url))
        .collect();
    Ok(answer(StatusCode::OK, Value::Array(groups)))
}

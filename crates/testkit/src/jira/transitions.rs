//! REST routes of the workflow: offered transitions and their required fields.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::JiraTransition;
use super::desk::{JiraState, MoveError};
use super::extractors::{JiraCaller, JsonBody, ReadableIssue};
use super::rest::{JiraAnswer, render_bad_request, render_missing_issue};
use super::state::RESOLUTIONS;
use crate::http::render_json_answer;

const RESOLUTION: &str = "resolution";

/// Returns the name of the resolution that a request names by id or name.
fn read_resolution(fields: &Value) -> Result<Option<&'static str>, Value> {
    let given = &fields[RESOLUTION];
    if given.is_null() {
        return Ok(None);
    }
    let is_it = |(id, name): &&(&str, &str)| given["id"] == *id || given["name"] == *name;
    match RESOLUTIONS.iter().find(is_it) {
        Some((_, name)) => Ok(Some(*name)),
        None => Err(json!({RESOLUTION: "Resolution is not valid."})),
    }
}

#[derive(Deserialize)]
pub(super) struct TransitionsQuery {
    #[serde(default)]
    expand: String,
}

pub(super) async fn list_transitions(
    ReadableIssue { desk, issue }: ReadableIssue,
    Query(query): Query<TransitionsQuery>,
) -> JiraAnswer {
    let with_fields = query.expand.split(',').any(|part| part == "transitions.fields");
    let offered = desk.offered(issue.status).into_iter();
    let transitions: Vec<Value> = offered
        .map(|(id, to, transition)| {
            let mut body = transition.json(&id, &desk.statuses[to].json(to, &desk.site), &desk.site);
            if with_fields {
                body["fields"] = Value::Object(render_screen_fields(&transition));
            }
            body
        })
        .collect();
    Ok(render_json_answer(
        StatusCode::OK,
        json!({"expand": "transitions", "transitions": transitions}),
    ))
}

fn derive_field_key(field: &str) -> String {
    field.to_lowercase().replace(' ', "_")
}

fn render_screen_fields(transition: &JiraTransition) -> Map<String, Value> {
    let fields = transition.asks_for.iter().map(|name| {
        let key = derive_field_key(name);
        let kind = if key == RESOLUTION { RESOLUTION } else { "string" };
        let mut field = json!({
            "required": true, "name": name, "key": key, "hasDefaultValue": false, "operations": ["set"],
            "schema": {"type": kind, "system": key},
        });
        if key == RESOLUTION {
            let resolutions = RESOLUTIONS.iter();
            field["allowedValues"] = resolutions
                .map(|(id, name)| json!({"id": id, "name": name}))
                .collect();
        }
        (key, field)
    });
    fields.collect()
}

/// Returns the id of the requested transition. Some clients send it as a number.
fn id_of(body: &Value) -> Option<String> {
    let id = &body["transition"]["id"];
    id.as_str()
        .map(str::to_owned)
        .or_else(|| id.as_u64().map(|id| id.to_string()))
}

pub(super) async fn perform_transition(
    State(desk): State<Arc<JiraState>>,
    caller: JiraCaller,
    Path(key_or_id): Path<String>,
    JsonBody(body): JsonBody<Value>,
) -> JiraAnswer {
    let wanted = id_of(&body).ok_or_else(|| render_bad_request("Missing 'transition' identifier"))?;
    let issue = desk.issue(&key_or_id).ok_or_else(render_missing_issue)?;
    let offered = desk.offered(issue.status);
    let invalid = || {
        render_bad_request(format!(
            "It seems that you have tried to perform a workflow operation ({wanted}) that is not valid for the current state of this issue ({key_or_id})."
        ))
    };
    let (_, to, transition) = offered
        .into_iter()
        .find(|(id, ..)| *id == wanted)
        .ok_or_else(invalid)?;
    // A required field may be in `fields` or in `update`.
    let lacking: Map<String, Value> = transition
        .asks_for
        .iter()
        .filter(|name| {
            body["fields"][derive_field_key(name)].is_null()
                && body["update"][derive_field_key(name)].is_null()
        })
        .map(|name| (derive_field_key(name), format!("{name} is required.").into()))
        .collect();
    if !lacking.is_empty() {
        return Err(render_json_answer(
            StatusCode::BAD_REQUEST,
            json!({"errorMessages": [], "errors": lacking}),
        ));
    }
    // Jira refuses fields that are not on the transition's screen.
    let fields = body["fields"].as_object().into_iter().flatten();
    let is_on_screen = |name: &String| {
        transition
            .asks_for
            .iter()
            .any(|asked| derive_field_key(asked) == *name)
    };
    let strange: Map<String, Value> = fields
        .filter(|(name, _)| !is_on_screen(name))
        .map(|(name, _)| {
            let text =
                format!("Field '{name}' cannot be set. It is not on the appropriate screen, or unknown.");
            (name.clone(), text.into())
        })
        .collect();
    let invalid_field = |errors: Value| {
        render_json_answer(
            StatusCode::BAD_REQUEST,
            json!({"errorMessages": [], "errors": errors}),
        )
    };
    if !strange.is_empty() {
        return Err(invalid_field(Value::Object(strange)));
    }
    let resolution = read_resolution(&body["fields"]).map_err(invalid_field)?;
    match desk.transition(&issue.key, to, resolution, &caller.0) {
        Ok(_) => Ok(StatusCode::NO_CONTENT.into_response()),
        Err(MoveError::NoIssue) => Err(render_missing_issue()),
        Err(MoveError::NoStatus | MoveError::Illegal) => Err(invalid()),
    }
}

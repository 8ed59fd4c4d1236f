//! Links and subtasks of issues, over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::desk::JiraState;
use super::extractors::{JiraCaller, JsonBody};
use super::rest::{JiraAnswer, refuse_request, render_missing_issue};
use super::shape;
use super::site::StandInSite;
use super::state::{LINK_TYPES, RelationKind, TicketLink, TicketRecord};
use crate::http::render_json_answer;

/// Returns the fields of an issue that show its links: name and value.
pub(super) fn render_link_fields(desk: &JiraState, issue: &TicketRecord) -> Vec<(&'static str, Value)> {
    let (mut links, mut parts, mut parent) = (Vec::new(), Vec::new(), None);
    for relation in desk.relations() {
        let is_from = relation.from == issue.key;
        if !is_from && relation.to != issue.key {
            continue;
        }
        let other = if is_from { &relation.to } else { &relation.from };
        let Some(other) = desk.issue(other) else { continue };
        let other = shape::render_linked_issue(&other, &desk.statuses, &desk.site);
        match relation.kind {
            RelationKind::Parent if is_from => parts.push(other),
            RelationKind::Parent => parent = Some(other),
            RelationKind::Link(number) => {
                links.push(render_issue_link(&relation, number, is_from, &other, &desk.site))
            }
        }
    }
    let all = [
        ("issuelinks", Some(json!(links))),
        ("subtasks", Some(json!(parts))),
        ("parent", parent),
    ];
    // A ticket without a parent has no field `parent`.
    all.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

fn render_issue_link(
    relation: &TicketLink,
    number: usize,
    is_from: bool,
    other: &Value,
    site: &StandInSite,
) -> Value {
    let end = if is_from { "outwardIssue" } else { "inwardIssue" };
    json!({
        "id": relation.id.to_string(), "self": format!("{site}{}/issueLink/{}", site.rest(), relation.id),
        "type": link_type(number, site), end: other,
    })
}

fn link_type(number: usize, site: &StandInSite) -> Value {
    let (name, inward, outward) = LINK_TYPES[number];
    let id = 10_000 + number;
    json!({
        "id": id.to_string(), "name": name, "inward": inward, "outward": outward,
        "self": format!("{site}{}/issueLinkType/{id}", site.rest()),
    })
}

pub(super) async fn link_types(State(desk): State<Arc<JiraState>>, _caller: JiraCaller) -> Response {
    let types = (0..LINK_TYPES.len()).map(|number| link_type(number, &desk.site));
    let types: Vec<Value> = types.collect();
    render_json_answer(StatusCode::OK, json!({"issueLinkTypes": types}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct NewLink {
    r#type: LinkTypeName,
    inward_issue: IssueKey,
    outward_issue: IssueKey,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkTypeName {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IssueKey {
    key: String,
}

/// Links two issues. As in Jira, the outward description applies to the inward issue: `inwardIssue`
/// duplicates `outwardIssue`.
pub(super) async fn create_issue_link(
    State(desk): State<Arc<JiraState>>,
    _caller: JiraCaller,
    JsonBody(new): JsonBody<NewLink>,
) -> JiraAnswer {
    let name = &new.r#type.name;
    if !LINK_TYPES.iter().any(|(known, ..)| known == name) {
        let message = format!("No issue link type with name '{name}' found.");
        return Err(refuse_request(StatusCode::NOT_FOUND, &message));
    }
    desk.relate(&new.inward_issue.key, name, &new.outward_issue.key)
        .ok_or_else(render_missing_issue)?;
    Ok(StatusCode::CREATED.into_response())
}

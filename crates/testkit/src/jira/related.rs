//! Links and subtasks of issues, over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::desk::Desk;
use super::extract::{Body, Caller};
use super::rest::{Handled, missing, refuse};
use super::shape;
use super::site::Site;
use super::state::{Issue, LINK_TYPES, Relation, RelationKind};
use crate::http::answer;

/// Returns the fields of an issue that show its links: name and value.
pub(super) fn fields(desk: &Desk, issue: &Issue) -> Vec<(&'static str, Value)> {
    let (mut links, mut parts, mut parent) = (Vec::new(), Vec::new(), None);
    for relation in desk.relations() {
        let is_from = relation.from == issue.key;
        if !is_from && relation.to != issue.key {
            continue;
        }
        let other = if is_from { &relation.to } else { &relation.from };
        let Some(other) = desk.issue(other) else { continue };
        let other = shape::related(&other, &desk.statuses, &desk.site);
        match relation.kind {
            RelationKind::Parent if is_from => parts.push(other),
            RelationKind::Parent => parent = Some(other),
            RelationKind::Link(number) => links.push(link(&relation, number, is_from, &other, &desk.site)),
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

fn link(relation: &Relation, number: usize, is_from: bool, other: &Value, site: &Site) -> Value {
    let end = if is_from { "outwardIssue" } else { "inwardIssue" };
    json!({
        "id": relation.id.to_string(), "self": format!("{site}{}/issueLink/{}", site.rest(), relation.id),
        "type": link_type(number, site), end: other,
    })
}

fn link_type(number: usize, site: &Site) -> Value {
    let (name, inward, outward) = LINK_TYPES[number];
    let id = 10_000 + number;
    json!({
        "id": id.to_string(), "name": name, "inward": inward, "outward": outward,
        "self": format!("{site}{}/issueLinkType/{id}", site.rest()),
    })
}

pub(super) async fn link_types(State(desk): State<Arc<Desk>>, _caller: Caller) -> Response {
    let types = (0..LINK_TYPES.len()).map(|number| link_type(number, &desk.site));
    let types: Vec<Value> = types.collect();
    answer(StatusCode::OK, json!({"issueLinkTypes": types}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct NewLink {
    r#type: Named,
    inward_issue: Keyed,
    outward_issue: Keyed,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keyed {
    key: String,
}

/// Links two issues. As in Jira, the outward description applies to the inward issue: `inwardIssue`
/// duplicates `outwardIssue`.
pub(super) async fn create(
    State(desk): State<Arc<Desk>>,
    _caller: Caller,
    Body(new): Body<NewLink>,
) -> Handled {
    let name = &new.r#type.name;
    if !LINK_TYPES.iter().any(|(known, ..)| known == name) {
        let message = format!("No issue link type with name '{name}' found.");
        return Err(refuse(StatusCode::NOT_FOUND, &message));
    }
    desk.relate(&new.inward_issue.key, name, &new.outward_issue.key)
        .ok_or_else(missing)?;
    Ok(StatusCode::CREATED.into_response())
}

//! Issues that are linked with each other.

use serde_json::{Value, json};

use super::desk::Desk;
use super::shape;
use super::state::{Issue, LINK_TYPES, Relation, RelationKind};

/// The fields of an issue that tell of others: name and value.
pub(super) fn fields(desk: &Desk, issue: &Issue) -> Vec<(&'static str, Value)> {
    let (mut links, mut parts, mut parent) = (Vec::new(), Vec::new(), None);
    for relation in desk.relations() {
        let is_from = relation.from == issue.key;
        if !is_from && relation.to != issue.key {
            continue;
        }
        let other = if is_from { &relation.to } else { &relation.from };
        let Some(other) = desk.issue(other) else { continue };
        let other = shape::related(&other, &desk.statuses, &desk.url);
        match relation.kind {
            RelationKind::Parent if is_from => parts.push(other),
            RelationKind::Parent => parent = Some(other),
            RelationKind::Link(number) => links.push(link(&relation, number, is_from, &other, &desk.url)),
        }
    }
    let all = [
        ("issuelinks", Some(json!(links))),
        ("subtasks", Some(json!(parts))),
        ("parent", parent),
    ];
    all.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

fn link(relation: &Relation, number: usize, is_from: bool, other: &Value, url: &str) -> Value {
    let (name, inward, outward) = LINK_TYPES[number];
    let id = 10_000 + number;
    let end = if is_from { "outwardIssue" } else { "inwardIssue" };
    json!({
        "id": relation.id.to_string(), "self": format!("{url}/rest/api/3/issueLink/{}", relation.id),
        "type": {
            "id": id.to_string(), "name": name, "inward": inward, "outward": outward,
            "self": format!("{url}/rest/api/3/issueLinkType/{id}"),
        },
        end: other,
    })
}

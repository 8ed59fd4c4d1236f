//! JSON of the fields that a triage sets, and of a site's link types.

use serde::Deserialize;

use super::{WireName, value_or_null};
use crate::TriageFields;

#[derive(Deserialize)]
pub(crate) struct WireTriage {
    fields: WireTriageFields,
}

#[derive(Deserialize)]
struct WireTriageFields {
    priority: Option<WireName>,
    issuetype: Option<WireName>,
    #[serde(default, deserialize_with = "value_or_null")]
    issuelinks: Vec<WireTriageLink>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireTriageLink {
    r#type: WireName,
    inward_issue: Option<WireKey>,
    outward_issue: Option<WireKey>,
}

#[derive(Deserialize)]
struct WireKey {
    key: String,
}

impl From<WireTriage> for TriageFields {
    fn from(wire: WireTriage) -> Self {
        let name = |known: Option<WireName>| known.map(|known| known.name).unwrap_or_default();
        let links = wire.fields.issuelinks.into_iter();
        let links = links.filter_map(|link| {
            let other = link.inward_issue.or(link.outward_issue)?;
            Some((other.key, link.r#type.name))
        });
        Self {
            priority: name(wire.fields.priority),
            issue_type: name(wire.fields.issuetype),
            links: links.collect(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireLinkTypes {
    issue_link_types: Vec<WireName>,
}

impl WireLinkTypes {
    pub(crate) fn names(self) -> impl Iterator<Item = String> {
        self.issue_link_types.into_iter().map(|known| known.name)
    }
}

//! JSON of linked issues.

use domain::{Instance, TicketKey};
use serde::Deserialize;

use super::{search::key, value::WireName};
use crate::Related;

/// Link of an issue, with the other issue at one end.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireLink {
    r#type: WireLinkType,
    inward_issue: Option<WireLinked>,
    outward_issue: Option<WireLinked>,
}

#[derive(Deserialize)]
struct WireLinkType {
    inward: String,
    outward: String,
}

/// The other issue; without fields when our account cannot see it.
#[derive(Deserialize)]
pub(super) struct WireLinked {
    key: String,
    fields: Option<WireLinkedFields>,
}

#[derive(Deserialize)]
struct WireLinkedFields {
    #[serde(default)]
    summary: String,
    status: WireName,
}

impl WireLink {
    pub(super) fn into_related(self, instance: Option<&Instance>) -> Option<Related> {
        let WireLink {
            r#type,
            inward_issue,
            outward_issue,
        } = self;
        let inward = inward_issue.and_then(|issue| issue.into_related(r#type.inward, instance));
        inward.or_else(|| outward_issue.and_then(|issue| issue.into_related(r#type.outward, instance)))
    }
}

impl WireLinked {
    /// Converts to a linked issue; `None` for one that our account cannot see, or with an invalid key.
    pub(super) fn into_related(self, relation: String, instance: Option<&Instance>) -> Option<Related> {
        let fields = self.fields?;
        let key: TicketKey = key(&self.key, instance).ok()?;
        Some(Related {
            key,
            relation,
            summary: fields.summary,
            status: fields.status.name,
        })
    }
}

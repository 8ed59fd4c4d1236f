//! JSON of linked issues.

use domain::{InstanceName, TicketKey};
use serde::Deserialize;

use super::{WireName, search::parse_key, value_or_null};
use crate::RelatedIssue;

/// Link of an issue, with the other issue at one end.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireIssueLink {
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
    #[serde(default, deserialize_with = "value_or_null")]
    summary: String,
    status: WireName,
}

impl WireIssueLink {
    pub(super) fn into_related(self, instance: Option<&InstanceName>) -> Option<RelatedIssue> {
        let WireIssueLink {
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
    pub(super) fn into_related(
        self,
        relation: String,
        instance: Option<&InstanceName>,
    ) -> Option<RelatedIssue> {
        let fields = self.fields?;
        let key: TicketKey = parse_key(&self.key, instance).ok()?;
        Some(RelatedIssue {
            key,
            relation,
            summary: fields.summary,
            status: fields.status.name,
        })
    }
}

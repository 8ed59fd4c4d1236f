//! Request of a triage.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::request::RequestProperties;
use crate::RepositoryName;

/// Request to set the values that a triage chose for a ticket. Existing labels remain.
///
/// The name of this request in stored records is `add_labels`, after its first feature.
// An external service may refuse a single value, such as a priority. The receipt names it, and the other
// values are set nevertheless.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketTriaged {
    /// The repository whose rules apply; absent in records of earlier releases: that of the ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryName>,
    /// Chosen labels, each permitted by the repository's rules.
    pub labels: Vec<String>,
    /// Key of an open ticket with the same request. The reporter names it, links the two, and labels the
    /// duplicate. It closes neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<String>,
    /// Name of the issue type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue_type: Option<String>,
    /// Name of the priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Values for fields of the project, by the names of the fields.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}

impl RequestProperties for TicketTriaged {
    fn repository(&self) -> Option<&RepositoryName> {
        self.repository.as_ref()
    }

    fn answers_call(&self) -> bool {
        true
    }

    fn summary(&self) -> String {
        let mut parts = vec![format!("label the ticket {}", self.labels.join(", "))];
        parts.extend(self.issue_type.iter().map(|name| format!("type {name}")));
        parts.extend(self.priority.iter().map(|name| format!("priority {name}")));
        parts.extend(
            self.fields
                .iter()
                .map(|(field, value)| format!("{field} {value}")),
        );
        parts.extend(self.duplicate_of.iter().map(|of| format!("repeats {of}")));
        parts.join("; ")
    }
}

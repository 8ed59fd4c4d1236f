//! What a triage asks for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::request::Request;
use crate::RepositoryName;

/// A ticket was triaged: set what was chosen for it. Labels that are there already stay.
///
/// Its name in stored records is that of its first part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Triaged {
    /// Whose rules hold; absent in what an earlier release wrote: those of the ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryName>,
    /// Each one allowed by the repository's rules.
    pub labels: Vec<String>,
    /// The open ticket that seems to ask for the same, as people write its key: say so, link the two, and label that too.
    /// Nothing is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<String>,
    /// The type of issue that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue_type: Option<String>,
    /// How urgent it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Values for fields of the project, by the fields' names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}

impl Request for Triaged {
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

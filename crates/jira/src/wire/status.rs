//! JSON of statuses, of an issue and of a project.

use serde::Deserialize;

use crate::{IssueStatus, StatusCategory};

/// Statuses of one issue type in a project.
#[derive(Deserialize)]
pub(crate) struct WireTypeStatuses {
    #[serde(default)]
    pub(crate) statuses: Vec<WireStatusName>,
}

/// Status by its name.
#[derive(Deserialize)]
pub(crate) struct WireStatusName {
    pub(crate) name: String,
}

#[derive(Deserialize)]
pub(super) struct WireStatus {
    name: String,
    #[serde(rename = "statusCategory")]
    category: Option<WireStatusCategory>,
}

#[derive(Deserialize)]
struct WireStatusCategory {
    #[serde(default)]
    key: String,
}

impl From<WireStatus> for IssueStatus {
    fn from(wire: WireStatus) -> Self {
        let category = match wire.category.as_ref().map(|category| category.key.as_str()) {
            // Jira's keys of the three categories; they are the same in each language of the site.
            Some("done") => StatusCategory::Done,
            Some("indeterminate") => StatusCategory::InProgress,
            Some(_) | None => StatusCategory::ToDo,
        };
        Self {
            name: wire.name,
            category,
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct WireStatusOnly {
    fields: WireStatusField,
}

#[derive(Deserialize)]
struct WireStatusField {
    status: WireStatus,
}

impl From<WireStatusOnly> for IssueStatus {
    fn from(wire: WireStatusOnly) -> Self {
        wire.fields.status.into()
    }
}

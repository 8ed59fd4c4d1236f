//! Where an issue is in its workflow, and where issues of a project can be.

use serde::Deserialize;

use crate::{Status, StatusCategory};

/// A project's statuses, issue type by issue type.
#[derive(Deserialize)]
pub(crate) struct WireTypeStatuses {
    #[serde(default)]
    pub(crate) statuses: Vec<WireStatusName>,
}

/// A status by its name.
#[derive(Deserialize)]
pub(crate) struct WireStatusName {
    pub(crate) name: String,
}

#[derive(Deserialize)]
pub(super) struct WireStatus {
    name: String,
    #[serde(rename = "statusCategory")]
    category: Option<WireCategory>,
}

#[derive(Deserialize)]
struct WireCategory {
    #[serde(default)]
    key: String,
}

impl From<WireStatus> for Status {
    fn from(wire: WireStatus) -> Self {
        let category = match wire.category.as_ref().map(|category| category.key.as_str()) {
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

impl From<WireStatusOnly> for Status {
    fn from(wire: WireStatusOnly) -> Self {
        wire.fields.status.into()
    }
}

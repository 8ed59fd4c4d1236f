//! JSON of projects, and of the statuses of a project or an issue.

use serde::Deserialize;

use crate::{FoundProjects, IssueStatus, StatusCategory};

/// Maximum number of projects in a list.
pub(crate) const MAX_PROJECTS: usize = 50;

/// Project by its key.
#[derive(Deserialize)]
pub(crate) struct WireProjectKey {
    key: String,
}

/// Collects the first projects of a list with so many entries.
pub(crate) fn collect_projects(projects: Vec<WireProjectKey>, total: usize) -> FoundProjects {
    let keys = projects.into_iter().map(|project| project.key);
    let keys: Vec<String> = keys.take(MAX_PROJECTS).collect();
    FoundProjects {
        has_more: total > keys.len(),
        keys,
    }
}

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

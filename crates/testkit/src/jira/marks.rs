//! Labels and components of tickets.

use serde_json::json;

use super::{desk::Desk, state::Account};
use crate::http::lock;

impl Desk {
    pub(super) fn set_labels(&self, key: &str, labels: &[&str], by: &Account) -> Option<()> {
        let mut issues = lock(&self.issues);
        let id = issues.fresh_id();
        let issue = issues.named(key)?;
        let before = issue.labels.join(" ");
        issue.labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let item = json!({
            "field": "labels", "fieldtype": "jira", "fieldId": "labels", "from": null, "fromString": before,
            "to": null, "toString": issue.labels.join(" "),
        });
        self.record(issue, id, by, vec![item]);
        Some(())
    }

    pub(super) fn set_components(&self, key: &str, components: &[&str], by: &Account) -> Option<()> {
        let mut issues = lock(&self.issues);
        let id = issues.fresh_id();
        let issue = issues.named(key)?;
        let before = issue.components.join(", ");
        issue.components = components.iter().map(|name| (*name).to_owned()).collect();
        let item = json!({
            "field": "Component", "fieldtype": "jira", "fieldId": "components", "from": null, "fromString": before,
            "to": null, "toString": issue.components.join(", "),
        });
        self.record(issue, id, by, vec![item]);
        Some(())
    }
}

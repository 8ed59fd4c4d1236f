//! Labels and components of tickets.

use serde_json::{Value, json};

use super::{
    desk::Desk,
    site::Site,
    state::{Account, Issue},
};
use crate::http::lock;

/// The number of an issue's first field of the site's own.
const FIRST_FIELD: usize = 10_050;

impl Issue {
    /// Choices in fields of the site, by the fields' ids.
    pub(super) fn custom_fields(&self, site: &Site) -> Vec<(String, Value)> {
        let fields = self.custom.iter().enumerate().map(|(at, (_, value))| {
            let choice = json!({"self": format!("{site}{}/customFieldOption/10020", site.rest()), "id": "10020", "value": value});
            (format!("customfield_{}", at + FIRST_FIELD), choice)
        });
        fields.collect()
    }

    /// A field's name on pages.
    pub(super) fn field_name(&self, id: &str) -> String {
        let number = id
            .strip_prefix("customfield_")
            .and_then(|number| number.parse::<usize>().ok());
        let own = number.and_then(|number| self.custom.get(number.checked_sub(FIRST_FIELD)?));
        own.map_or_else(|| id.to_owned(), |(name, _)| name.clone())
    }
}

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

    pub(super) fn set_field(&self, key: &str, name: &str, value: &str, by: &Account) -> Option<()> {
        let mut issues = lock(&self.issues);
        let id = issues.fresh_id();
        let issue = issues.named(key)?;
        issue.custom.retain(|(known, _)| known != name);
        issue.custom.push((name.to_owned(), value.to_owned()));
        let field = issue.custom.len() + FIRST_FIELD - 1;
        let item = json!({
            "field": name, "fieldtype": "custom", "fieldId": format!("customfield_{field}"), "from": null,
            "fromString": null, "to": null, "toString": value,
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

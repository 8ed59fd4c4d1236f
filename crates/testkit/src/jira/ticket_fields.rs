//! Labels, components and custom fields of tickets.

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use serde_json::{Value, json};

use super::{
    adf,
    desk::JiraState,
    extractors::JiraCaller,
    rest::JiraAnswer,
    state::{CustomFieldValue, EPIC_LINK, JiraAccount, TicketRecord},
};
use crate::http::render_json_answer;

/// Number of the site's first custom field (`customfield_10050`).
const FIRST_FIELD: usize = 10_050;

/// Lists the custom fields and one system field, `summary`.
pub(super) async fn list_fields(State(desk): State<Arc<JiraState>>, _caller: JiraCaller) -> JiraAnswer {
    let own = desk.fields.lock().clone();
    let title = json!({"type": "string", "system": "summary"});
    let own = own
        .iter()
        .enumerate()
        .map(|(at, name)| render_field(&field_id(at), name, &describe_field_type(at, name)));
    let all = std::iter::once(render_field("summary", "Summary", &title)).chain(own);
    Ok(render_json_answer(StatusCode::OK, Value::Array(all.collect())))
}

fn render_field(id: &str, name: &str, schema: &Value) -> Value {
    json!({
        "id": id, "key": id, "name": name, "custom": schema["custom"].is_string(), "orderable": true,
        "navigable": true, "searchable": true, "clauseNames": [name], "schema": schema,
    })
}

/// Describes the type of a custom field: an epic link by its name, otherwise a text.
fn describe_field_type(at: usize, name: &str) -> Value {
    let (kind, custom) = if name == EPIC_LINK {
        ("any", "com.pyxis.greenhopper.jira:gh-epic-link")
    } else {
        (
            "string",
            "com.atlassian.jira.plugin.system.customfieldtypes:textarea",
        )
    };
    json!({"type": kind, "custom": custom, "customId": at + FIRST_FIELD})
}

fn field_id(at: usize) -> String {
    format!("customfield_{}", at + FIRST_FIELD)
}

impl JiraState {
    /// Returns the id of a custom field and creates the field if it is missing.
    fn own_field(&self, name: &str) -> String {
        let mut fields = self.fields.lock();
        let known = fields.iter().position(|known| known == name);
        field_id(known.unwrap_or_else(|| {
            fields.push(name.to_owned());
            fields.len() - 1
        }))
    }

    /// Returns the values of an issue's custom fields, by field id.
    pub(super) fn custom_fields(&self, issue: &TicketRecord) -> Vec<(String, Value)> {
        let site = &self.site;
        let fields = issue.custom.iter().map(|(name, value)| {
            let value = match value {
                CustomFieldValue::Choice(value) => {
                    json!({"self": format!("{site}{}/customFieldOption/10020", site.rest()), "id": "10020", "value": value})
                }
                CustomFieldValue::Text(document) if site.is_cloud() => document.clone(),
                CustomFieldValue::Text(document) => adf::render_changelog_text(document).into(),
                CustomFieldValue::Issue(key) => json!(key),
            };
            (self.own_field(name), value)
        });
        fields.collect()
    }

    /// Returns a field's display name, or its id if the field is not custom.
    pub(super) fn field_name(&self, id: &str) -> String {
        let number = id
            .strip_prefix("customfield_")
            .and_then(|number| number.parse::<usize>().ok());
        let fields = self.fields.lock();
        let own = number.and_then(|number| fields.get(number.checked_sub(FIRST_FIELD)?));
        own.map_or_else(|| id.to_owned(), Clone::clone)
    }

    pub(super) fn set_labels(&self, key: &str, labels: &[&str], by: &JiraAccount) -> Option<()> {
        let mut issues = self.issues.lock();
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

    pub(super) fn set_field(
        &self,
        key: &str,
        name: &str,
        value: CustomFieldValue,
        by: &JiraAccount,
    ) -> Option<()> {
        let field = self.own_field(name);
        let shown = match &value {
            CustomFieldValue::Choice(value) => value.clone(),
            CustomFieldValue::Text(document) => adf::render_changelog_text(document),
            CustomFieldValue::Issue(key) => key.clone(),
        };
        let mut issues = self.issues.lock();
        let id = issues.fresh_id();
        let issue = issues.named(key)?;
        issue.custom.retain(|(known, _)| known != name);
        issue.custom.push((name.to_owned(), value));
        let item = json!({
            "field": name, "fieldtype": "custom", "fieldId": field, "from": null, "fromString": null, "to": null,
            "toString": shown,
        });
        self.record(issue, id, by, vec![item]);
        Some(())
    }

    pub(super) fn set_components(&self, key: &str, components: &[&str], by: &JiraAccount) -> Option<()> {
        let mut issues = self.issues.lock();
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

//! Values for the fields of a transition's screen.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::model::{ScreenField, StatusCategory, WorkflowTransition};

// Resolutions of finished work, the most common one first.
const DONE: [&str; 3] = ["Done", "Fixed", "Resolved"];

/// Values to send with a transition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilledScreen {
    /// Values by the keys of their fields.
    pub fields: Map<String, Value>,
    /// Names of required fields without a value.
    pub missing: Vec<String>,
}

impl ScreenField {
    /// JSON of a value in a request; `None` when the field does not permit it.
    fn value(&self, wanted: &str) -> Option<Value> {
        let one = if self.allowed.is_empty() {
            match self.kind.as_str() {
                "number" => json!(wanted.trim().parse::<f64>().ok()?),
                "user" => self.dialect.account(Some(wanted)),
                _ if self.is_document => self.dialect.text(wanted),
                _ => json!(wanted),
            }
        } else {
            let mut allowed = self.allowed.iter();
            let (_, value) = allowed.find(|(name, _)| name.to_lowercase() == wanted.to_lowercase())?;
            value.clone()
        };
        // A field of several values takes a list also for one value.
        Some(if self.kind == "array" { json!([one]) } else { one })
    }

    /// Given value of this field. Jira ignores case in the names and keys of fields.
    fn given<'a>(&self, values: &'a BTreeMap<String, String>) -> Option<&'a str> {
        let own = [self.name.to_lowercase(), self.key.to_lowercase()];
        let is_it = |name: &str| own.contains(&name.to_lowercase());
        let mut values = values.iter();
        values
            .find(|(name, _)| is_it(name))
            .map(|(_, value)| value.as_str())
    }
}

impl WorkflowTransition {
    /// Fills in the fields of its screen with the given values, by names or keys of fields. A required
    /// resolution without a value becomes that of finished work when the transition leads to a done status.
    pub fn fill(&self, given: &BTreeMap<String, String>) -> FilledScreen {
        let mut filled = FilledScreen::default();
        for field in &self.screen {
            let given = field.given(given).map(|value| field.value(value));
            let is_end = self.to.category == StatusCategory::Done;
            let usual = || DONE.iter().find_map(|usual| field.value(usual));
            let value = match given {
                Some(value) => value,
                None if field.must && is_end && field.key == "resolution" => usual(),
                None => None,
            };
            match value {
                Some(value) => drop(filled.fields.insert(field.key.clone(), value)),
                None if field.must => filled.missing.push(field.name.clone()),
                None => {}
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::IssueStatus;

    fn build_field(name: &str, kind: &str, must: bool) -> ScreenField {
        ScreenField {
            key: name.to_lowercase().replace(' ', "_"),
            name: name.to_owned(),
            must,
            kind: kind.to_owned(),
            ..ScreenField::default()
        }
    }

    fn fill_screen(
        category: StatusCategory,
        screen: Vec<ScreenField>,
        given: &[(&str, &str)],
    ) -> FilledScreen {
        let transition = WorkflowTransition {
            id: "1".to_owned(),
            name: "Finish".to_owned(),
            to: IssueStatus {
                name: "Done".to_owned(),
                category,
            },
            asks_for: Vec::new(),
            screen,
        };
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        transition.fill(&given.collect())
    }

    fn build_resolution_field() -> ScreenField {
        let allowed = [("Won't Do", "2"), ("Done", "1")];
        ScreenField {
            allowed: allowed
                .map(|(name, id)| (name.to_owned(), json!({ "id": id })))
                .to_vec(),
            ..build_field("Resolution", "resolution", true)
        }
    }

    #[test]
    fn screen_values_match_by_name_or_key() {
        let lines = ScreenField {
            is_document: true,
            ..build_field("Release note", "string", false)
        };
        let screen = vec![
            build_resolution_field(),
            build_field("Points", "number", true),
            build_field("Parts", "array", true),
            lines,
            build_field("Reason", "string", true),
            build_field("Unasked", "string", false),
        ];
        let given = [
            ("resolution", "won't do"),
            ("Points", "3"),
            ("parts", "cart"),
            ("release_note", "New."),
            ("Elsewhere", "x"),
        ];
        let filled = fill_screen(StatusCategory::Done, screen, &given);
        assert_eq!(filled.missing, ["Reason"]);
        let value = |key: &str| filled.fields.get(key).cloned().unwrap_or_default();
        assert_eq!(value("resolution"), json!({"id": "2"}));
        assert_eq!((value("points"), value("parts")), (json!(3.0), json!(["cart"])));
        assert_eq!(value("release_note")["type"], json!("doc"));
        assert_eq!(filled.fields.len(), 4);
    }

    #[test]
    fn field_name_ignores_case_in_every_script() {
        let screen = vec![build_field("Grund für Änderung", "string", true)];
        let filled = fill_screen(StatusCategory::Done, screen, &[("GRUND FÜR ÄNDERUNG", "x")]);
        assert!(
            filled.missing.is_empty() && filled.fields.len() == 1,
            "{filled:?}"
        );
    }

    #[test]
    fn required_resolution_defaults_at_done_status() {
        let screen = || vec![build_resolution_field()];
        let end = fill_screen(StatusCategory::Done, screen(), &[]);
        assert_eq!(end.fields.get("resolution"), Some(&json!({"id": "1"})));
        let before = fill_screen(StatusCategory::InProgress, screen(), &[]);
        assert_eq!(
            (before.fields.len(), before.missing),
            (0, vec!["Resolution".to_owned()])
        );
        let wrong = fill_screen(StatusCategory::Done, screen(), &[("Resolution", "Perfect")]);
        assert_eq!(wrong.missing, ["Resolution"]);
    }
}

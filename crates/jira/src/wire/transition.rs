//! JSON of the transitions that a workflow offers.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{status::WireStatus, text_or_number};
use crate::{JiraDialect, ScreenField, WorkflowTransition};

#[derive(Deserialize)]
pub(crate) struct WireTransitions {
    pub(crate) transitions: Vec<WireTransition>,
}

#[derive(Deserialize)]
pub(crate) struct WireTransition {
    #[serde(deserialize_with = "text_or_number")]
    id: String,
    name: String,
    to: WireStatus,
    #[serde(default)]
    fields: BTreeMap<String, WireScreenField>,
}

/// Field of a transition's screen.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireScreenField {
    #[serde(default)]
    required: bool,
    #[serde(default)]
    has_default_value: bool,
    #[serde(default)]
    name: String,
    #[serde(default)]
    schema: WireSchema,
    #[serde(default)]
    allowed_values: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireSchema {
    #[serde(rename = "type")]
    kind: String,
    system: String,
    custom: String,
}

impl WireSchema {
    fn is_document(&self) -> bool {
        // Text areas and these two system fields hold documents; other strings are plain text.
        self.custom.ends_with(":textarea") || matches!(self.system.as_str(), "description" | "environment")
    }
}

/// Name of a permitted value, with its id: requests accept the id for every type of field.
fn parse_allowed_value(value: &Value) -> Option<(String, Value)> {
    if let Some(text) = value.as_str() {
        return Some((text.to_owned(), json!(text)));
    }
    let name = value["name"].as_str().or_else(|| value["value"].as_str())?;
    Some((name.to_owned(), json!({ "id": value["id"].as_str()? })))
}

fn build_screen_field(key: String, wire: WireScreenField, dialect: JiraDialect) -> ScreenField {
    ScreenField {
        name: if wire.name.is_empty() {
            key.clone()
        } else {
            wire.name
        },
        key,
        must: wire.required && !wire.has_default_value,
        is_document: wire.schema.is_document(),
        kind: wire.schema.kind,
        allowed: wire
            .allowed_values
            .iter()
            .filter_map(parse_allowed_value)
            .collect(),
        dialect,
    }
}

impl WireTransition {
    pub(crate) fn into_transition(self, dialect: JiraDialect) -> WorkflowTransition {
        let fields = self.fields.into_iter();
        let screen = fields.map(|(key, field)| build_screen_field(key, field, dialect));
        let screen: Vec<_> = screen.collect();
        let asked = screen.iter().filter(|field| field.must);
        WorkflowTransition {
            id: self.id,
            name: self.name,
            to: self.to.into(),
            asks_for: asked.map(|field| field.name.clone()).collect(),
            screen,
        }
    }
}

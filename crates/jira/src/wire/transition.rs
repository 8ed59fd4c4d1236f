//! The moves that a workflow offers.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{status::WireStatus, value::text_or_number};
use crate::Transition;

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

/// A field of a transition's screen.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireScreenField {
    #[serde(default)]
    required: bool,
    #[serde(default)]
    has_default_value: bool,
    #[serde(default)]
    name: String,
}

impl From<WireTransition> for Transition {
    fn from(wire: WireTransition) -> Self {
        let asked = wire
            .fields
            .into_iter()
            .filter(|(_, field)| field.required && !field.has_default_value);
        let named = asked.map(|(key, field)| if field.name.is_empty() { key } else { field.name });
        Self {
            id: wire.id,
            name: wire.name,
            to: wire.to.into(),
            asks_for: named.collect(),
        }
    }
}

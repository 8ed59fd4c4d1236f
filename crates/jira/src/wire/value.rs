//! JSON that several answers have in common.

use domain::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{Error, error::truncate_text};

/// Page of a list with the total number of entries.
#[derive(Deserialize)]
pub(crate) struct WirePage<T> {
    #[serde(alias = "comments")]
    pub(crate) values: Vec<T>,
    #[serde(default)]
    pub(crate) total: usize,
}

/// Id of a created resource.
#[derive(Deserialize)]
pub(crate) struct WireId {
    #[serde(deserialize_with = "text_or_number")]
    pub(crate) id: String,
}

#[derive(Deserialize)]
pub(super) struct WireName {
    pub(super) name: String,
}

pub(super) fn parse_instant(text: &str) -> Result<Timestamp, Error> {
    Timestamp::parse(text).ok_or_else(|| Error::Malformed {
        detail: format!("time {}", truncate_text(text)),
    })
}

/// Deserializes an id. Jira writes ids as strings in most answers and as numbers in some.
pub(super) fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(serde::de::Error::custom("an id must be a text or a number"))
        }
    }
}

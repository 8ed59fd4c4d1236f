//! Texts that people write.

use domain::json;
use serde_json::{Value, value::RawValue};

use crate::{Error, adf};

/// A text of Jira as Markdown.
pub(super) fn markdown(raw: &RawValue, what: &str) -> Result<String, Error> {
    match json::from_slice::<Value>(raw.get().as_bytes()) {
        Ok(document) => Ok(adf::to_markdown(&document)),
        Err(json::Error::TooDeep) => Err(Error::TooDeep {
            what: what.to_owned(),
        }),
        Err(json::Error::Unreadable(_)) => Err(Error::Malformed {
            detail: what.to_owned(),
        }),
    }
}

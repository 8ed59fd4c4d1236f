//! What webhooks say: private payload structs become events that the router acts on.

pub(crate) mod github;
pub(crate) mod jira;

use domain::json;

/// The body is JSON but not the event that it claims to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event} event is not readable: {problem}")]
pub(crate) struct Unreadable {
    event: String,
    problem: String,
}

/// Reads a payload; the error names the place, never the content.
fn read<T: serde::de::DeserializeOwned>(event: &str, body: &[u8]) -> Result<T, Unreadable> {
    json::from_slice(body).map_err(|error| Unreadable {
        event: event.chars().take(60).collect(),
        problem: match error {
            json::Error::TooDeep => error.to_string(),
            json::Error::Unreadable(error) => problem(&error),
        },
    })
}

fn problem(error: &serde_json::Error) -> String {
    // Other messages of the parser quote the content.
    let text = error.to_string();
    let what = if text.starts_with("missing field") {
        text
    } else {
        format!("{:?} error", error.classify())
    };
    format!("{what}, line {}, column {}", error.line(), error.column())
}

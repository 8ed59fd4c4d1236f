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
    let unreadable = |problem: String| Unreadable {
        event: event.chars().take(60).collect(),
        problem,
    };
    let mut deserializer = json::deserializer(body).map_err(|error| unreadable(error.to_string()))?;
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let place = place(&error.path().to_string());
        unreadable(format!("{place}{}", problem(error.inner())))
    })?;
    deserializer.end().map_err(|error| unreadable(problem(&error)))?;
    Ok(value)
}

/// Where in the payload, for the operator: names of fields and numbers of items. Whatever else stands in a path was a key
/// of the payload.
fn place(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']');
    let plain: String = path.chars().filter(|c| is_plain(*c)).take(120).collect();
    if plain.chars().any(char::is_alphanumeric) {
        format!("at {plain}: ")
    } else {
        String::new()
    }
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

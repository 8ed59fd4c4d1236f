//! What webhooks say: private payload structs become events that the router acts on.

pub(crate) mod github;
pub(crate) mod jira;

/// The body is JSON but not the event that it claims to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event} event is not readable: {problem}")]
pub(crate) struct Unreadable {
    event: String,
    problem: String,
}

/// Reads a payload; the error names the place, never the content.
fn read<'de, T: serde::Deserialize<'de>>(event: &str, body: &'de [u8]) -> Result<T, Unreadable> {
    serde_json::from_slice(body).map_err(|error| {
        // Other messages of the parser quote the content.
        let text = error.to_string();
        let what = if text.starts_with("missing field") {
            text
        } else {
            format!("{:?} error", error.classify())
        };
        let problem = format!("{what}, line {}, column {}", error.line(), error.column());
        Unreadable {
            event: event.chars().take(60).collect(),
            problem,
        }
    })
}

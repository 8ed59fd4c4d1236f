//! Identities: tickets, repositories, instances, origins, runs, commits, authors, stored objects and points in
//! time, with the error for an invalid id.

pub(crate) mod attachment;
pub(crate) mod author;
pub(crate) mod commit;
pub(crate) mod ids;
pub(crate) mod instance;
pub(crate) mod object;
pub(crate) mod origin;
pub(crate) mod repository;
pub(crate) mod ticket;
pub(crate) mod time;

/// Error for a text that is not a valid id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct InvalidId {
    /// The text, truncated to 120 characters.
    pub text: String,
    /// Description of the expected form, with an example.
    pub expected: &'static str,
}

impl InvalidId {
    pub(crate) fn new(text: &str, expected: &'static str) -> Self {
        Self {
            // Ids arrive from webhooks and API requests of any length, and the error is logged.
            text: text.chars().take(120).collect(),
            expected,
        }
    }
}

macro_rules! text_serde {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }
    };
}
pub(crate) use text_serde;

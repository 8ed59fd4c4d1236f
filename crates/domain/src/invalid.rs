//! Why a text is not an identity, and how identities travel as text.

/// Why a text is not the id it claims to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct InvalidId {
    /// The text, cut to 120 characters.
    pub text: String,
    /// What it should have looked like, with an example.
    pub expected: &'static str,
}

impl InvalidId {
    pub(crate) fn new(text: &str, expected: &'static str) -> Self {
        Self {
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

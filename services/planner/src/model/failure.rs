//! Why a try failed, and how that is told.

use std::time::Duration;

use domain::ModelFault;
use serde::Deserialize;

/// The same call may work later.
pub(crate) const fn is_transient(kind: ModelFault) -> bool {
    matches!(kind, ModelFault::Unavailable | ModelFault::Unreadable)
}

/// Another provider may answer the same question.
pub(super) const fn is_of_the_provider(kind: ModelFault) -> bool {
    !matches!(kind, ModelFault::ContextTooLong | ModelFault::Refused)
}

/// The name in telemetry.
pub(super) const fn name(kind: ModelFault) -> &'static str {
    match kind {
        ModelFault::Unavailable => "unavailable",
        ModelFault::Unreadable => "unreadable",
        ModelFault::ContextTooLong => "context_too_long",
        ModelFault::CredentialsRefused => "credentials_refused",
        ModelFault::NotOffered => "not_offered",
        ModelFault::Refused => "refused",
    }
}

/// Why a model call failed for good, in words for people; never a body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub(crate) struct ModelError {
    pub(crate) words: String,
    pub(crate) kind: ModelFault,
}

/// Why one try failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Worth trying again, not before `after` when the provider says so.
    Transient { what: String, after: Option<Duration> },
    /// The answer was not what the dialect says.
    Garbage(&'static str),
    /// The provider does not take back the thinking that it is shown.
    StaleThinking,
    /// No try will help.
    Final(ModelFault, String),
}

impl Failure {
    /// Worth trying again.
    pub(super) fn transient(what: &str) -> Self {
        Self::Transient {
            what: what.to_owned(),
            after: None,
        }
    }

    /// In words for people.
    pub(super) fn told(&self) -> ModelError {
        let words = match self {
            Self::Transient { what, .. } => format!("the model provider {what}"),
            Self::Garbage(what) => format!("the model provider sent an answer that cannot be read ({what})"),
            Self::StaleThinking => "the model provider refused its own thinking".to_owned(),
            Self::Final(ModelFault::ContextTooLong, class) => {
                format!("the conversation is too long for the model ({class})")
            }
            Self::Final(ModelFault::CredentialsRefused, class) => {
                format!("the model provider refused the credentials ({class})")
            }
            Self::Final(ModelFault::NotOffered, class) => {
                format!("the model provider does not offer this model to this account ({class})")
            }
            Self::Final(_, class) => format!("the model provider refused the request ({class})"),
        };
        let kind = match self {
            Self::Transient { .. } => ModelFault::Unavailable,
            Self::Garbage(_) => ModelFault::Unreadable,
            Self::StaleThinking => ModelFault::Refused,
            Self::Final(kind, _) => *kind,
        };
        ModelError { words, kind }
    }
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        // The error's own text would show the URL, which may carry a gateway's key; its causes are for the operator.
        let causes = domain::cause::with_causes("the connection failed", std::error::Error::source(&error));
        tracing::warn!(error = causes, "no reply from the model provider");
        Self::transient(if error.is_connect() {
            "cannot be reached"
        } else {
            "broke the connection"
        })
    }
}

/// What an error says of itself, in any dialect. The message is looked at and never shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    class: Option<String>,
    message: String,
}

#[derive(Default, Deserialize)]
struct ErrorBody {
    #[serde(default)]
    error: ErrorDetail,
    #[serde(default, alias = "Message")]
    message: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(untagged)]
enum ErrorDetail {
    Detailed {
        #[serde(rename = "type", default)]
        class: Option<String>,
        #[serde(default)]
        code: Option<serde_json::Value>,
        #[serde(default)]
        message: Option<String>,
    },
    Text(String),
    #[default]
    Nothing,
}

const CLASS_CHARS: usize = 64;

/// Whether a class is a name and no text.
fn is_plain(class: &str) -> bool {
    class.len() <= CLASS_CHARS && class.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Said {
    /// What a body says. `named` is a class that stands elsewhere, as in a header.
    pub(super) fn read(body: &[u8], named: Option<&str>) -> Self {
        let body: ErrorBody = serde_json::from_slice(body).unwrap_or_default();
        let (class, message) = match body.error {
            ErrorDetail::Detailed { class, code, message } => {
                let code = code.as_ref().and_then(serde_json::Value::as_str);
                (code.map(str::to_owned).or(class), message)
            }
            ErrorDetail::Text(text) => (None, Some(text)),
            ErrorDetail::Nothing => (None, None),
        };
        Self {
            class: named.map(str::to_owned).or(class).filter(|class| is_plain(class)),
            message: message.or(body.message).unwrap_or_default().to_ascii_lowercase(),
        }
    }

    /// An error that came as an event.
    pub(super) fn new(class: &str, message: &str) -> Self {
        Self {
            class: Some(class.to_owned()).filter(|class| is_plain(class)),
            message: message.to_ascii_lowercase(),
        }
    }

    /// A class in words, after the status when there is one.
    pub(super) fn words(&self, status: Option<u16>) -> String {
        let parts = [status.map(|status| status.to_string()), self.class.clone()];
        let words: Vec<String> = parts.into_iter().flatten().collect();
        if words.is_empty() {
            "no reason given".to_owned()
        } else {
            words.join(" ")
        }
    }

    /// The kind of a refusal, where it is more than a refusal.
    pub(super) fn kind(&self) -> Option<Kind> {
        let class = self.class.as_deref().unwrap_or_default().to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| self.message.contains(word));
        let is = |classes: &[&str]| classes.iter().any(|known| class == *known);
        if is(&["context_length_exceeded", "model_context_window_exceeded"]) || says(&TOO_LONG) {
            Some(Kind::Final(ModelFault::ContextTooLong))
        } else if says(&STALE_THINKING) {
            Some(Kind::StaleThinking)
        } else if is(&[
            "insufficient_quota",
            "billing_error",
            "credit_balance_too_low",
            "not_found_error",
            "model_not_found",
            "deploymentnotfound",
            "resourcenotfoundexception",
        ]) || says(&["credit balance is too low"])
        {
            Some(Kind::Final(ModelFault::NotOffered))
        } else if is(&[
            "authentication_error",
            "permission_error",
            "invalid_api_key",
            "accessdeniedexception",
            "unrecognizedclientexception",
            "invalidsignatureexception",
            "expiredtokenexception",
        ]) {
            Some(Kind::Final(ModelFault::CredentialsRefused))
        } else if is(&["invalid_request_error", "validationexception"]) {
            Some(Kind::Final(ModelFault::Refused))
        } else {
            None
        }
    }
}

/// What an error is, as far as its words tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Final(ModelFault),
    StaleThinking,
}

impl Kind {
    /// The failure, told with `class`.
    pub(super) fn failure(self, class: String) -> Failure {
        match self {
            Self::Final(kind) => Failure::Final(kind, class),
            Self::StaleThinking => Failure::StaleThinking,
        }
    }
}

/// How providers and servers say that a conversation is too long.
const TOO_LONG: [&str; 8] = [
    "exceed context limit",
    "prompt is too long",
    "input is too long",
    "maximum context length",
    "context window",
    "context length",
    "exceeds the available context size",
    "too many input tokens",
];

/// How Anthropic says that a thinking block does not fit to what is before it, or is not its own.
const STALE_THINKING: [&str; 3] = [
    "invalid `signature` in `thinking`",
    "bound to a different",
    "blocks in the latest assistant message cannot be modified",
];

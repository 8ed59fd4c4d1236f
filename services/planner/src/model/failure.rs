//! Failures of model calls, and their wording for users.

use std::time::Duration;

use domain::ModelFault;
use serde::Deserialize;

use super::{quotation::quote_message, retry_hint, target::ModelTarget};

/// Returns true if the same call may succeed later.
pub(crate) const fn is_transient(kind: ModelFault) -> bool {
    matches!(kind, ModelFault::Unavailable | ModelFault::Unreadable)
}

/// Returns true if another provider may answer the same request.
pub(super) const fn is_provider_fault(kind: ModelFault) -> bool {
    !matches!(kind, ModelFault::ContextTooLong | ModelFault::Refused)
}

/// Returns the name in telemetry.
pub(super) const fn fault_name(kind: ModelFault) -> &'static str {
    match kind {
        ModelFault::Unavailable => "unavailable",
        ModelFault::Unreadable => "unreadable",
        ModelFault::ContextTooLong => "context_too_long",
        ModelFault::CredentialsRefused => "credentials_refused",
        ModelFault::NotOffered => "not_offered",
        ModelFault::Refused => "refused",
    }
}

/// Model call that failed for good, worded for users. It never contains a response body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub(crate) struct ModelError {
    pub(crate) words: String,
    pub(crate) kind: ModelFault,
    /// Tokens that the provider accepts in one request, where its refusal names them.
    pub(crate) limit: Option<u64>,
}

/// Failure of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AttemptFailure {
    /// A retry may succeed, not before `after` if the provider names a time.
    Transient {
        what: String,
        after: Option<Duration>,
        /// No process listens at the address, so a few attempts are enough.
        is_unreachable: bool,
    },
    /// The response violates the dialect.
    Garbage(&'static str),
    /// The provider refuses the thinking of its earlier reply.
    StaleThinking,
    /// A retry never succeeds.
    Final(ProviderRefusal),
}

/// Refusal: its kind, and the provider's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProviderRefusal {
    pub(super) cause: RefusalCause,
    /// Status and error class.
    pub(super) class: String,
    /// Message of the provider; may be empty.
    pub(super) quote: String,
}

/// Causes of a refusal, as far as a user reacts differently to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalCause {
    ContextTooLong,
    CredentialsRefused,
    /// The account has no such model.
    NoModel,
    NoCredit,
    /// One request needs more tokens than the account's limit per minute, so waiting does not help.
    AboveRateLimit {
        limit: u64,
        requested: u64,
    },
    /// The request itself is invalid.
    Request,
    /// The request was not sent.
    Unsent(ModelFault),
}

impl RefusalCause {
    const fn kind(self) -> ModelFault {
        match self {
            Self::ContextTooLong => ModelFault::ContextTooLong,
            Self::CredentialsRefused => ModelFault::CredentialsRefused,
            Self::NoModel | Self::NoCredit | Self::AboveRateLimit { .. } => ModelFault::NotOffered,
            Self::Request => ModelFault::Refused,
            Self::Unsent(kind) => kind,
        }
    }
}

impl AttemptFailure {
    /// Creates a failure that a retry may heal.
    pub(super) fn transient(what: &str) -> Self {
        Self::Transient {
            what: what.to_owned(),
            after: None,
            is_unreachable: false,
        }
    }

    /// Creates the failure of a request that cannot be sent.
    #[cfg_attr(
        not(feature = "bedrock"),
        allow(dead_code, reason = "only a signed request fails before it is sent")
    )]
    pub(super) fn unsent(kind: ModelFault, problem: &str) -> Self {
        Self::Final(ProviderRefusal {
            cause: RefusalCause::Unsent(kind),
            class: problem.to_owned(),
            quote: String::new(),
        })
    }

    /// Returns the kind of the failure.
    pub(super) const fn kind(&self) -> ModelFault {
        match self {
            Self::Transient { .. } => ModelFault::Unavailable,
            Self::Garbage(_) => ModelFault::Unreadable,
            Self::StaleThinking => ModelFault::Refused,
            Self::Final(refusal) => refusal.cause.kind(),
        }
    }

    /// Renders the failure for users.
    pub(super) fn describe(&self, asked: &ModelTarget) -> ModelError {
        let (host, model) = (&asked.host, &asked.model);
        let words = match self {
            Self::Transient { what, .. } => format!("the model provider at {host} {what}"),
            Self::Garbage(what) => {
                format!("the model provider at {host} sent an answer that cannot be read ({what})")
            }
            Self::StaleThinking => format!("the model provider at {host} refused its own thinking"),
            Self::Final(refusal) => {
                let class = &refusal.class;
                let words = match refusal.cause {
                    RefusalCause::ContextTooLong => {
                        format!("the conversation is too long for the model {model}: {class} from {host}")
                    }
                    RefusalCause::CredentialsRefused => {
                        let credential = &asked.credential;
                        format!(
                            "the model provider refused the credentials: {class} from {host} for {credential}"
                        )
                    }
                    RefusalCause::NoModel => format!(
                        "the model provider does not offer the model {model} to this account: {class} from {host} for {}",
                        asked.credential
                    ),
                    RefusalCause::NoCredit => format!(
                        "the account at the model provider is out of credit: {class} from {host} for {}, model {model}; add \
                         credit there, or use another key",
                        asked.credential
                    ),
                    RefusalCause::AboveRateLimit { limit, requested } => format!(
                        "one request for the model {model} needs {requested} tokens, and the account's limit for a minute is \
                         {limit} ({class} from {host}); raise the limit there, or set model.windows.\"{model}\" to less"
                    ),
                    RefusalCause::Unsent(_) => {
                        format!("the model {model} at {host} was not asked: {class}")
                    }
                    RefusalCause::Request => {
                        format!(
                            "the model provider refused the request: {class} from {host} for the model {model}"
                        )
                    }
                };
                if refusal.quote.is_empty() {
                    words
                } else {
                    format!("{words}; it says \"{}\"", asked.without_secrets(&refusal.quote))
                }
            }
        };
        let limit = if let Self::Final(ProviderRefusal {
            cause: RefusalCause::AboveRateLimit { limit, .. },
            ..
        }) = self
        {
            Some(*limit)
        } else {
            None
        };
        ModelError {
            words: asked.without_secrets(&words),
            kind: self.kind(),
            limit,
        }
    }
}

impl From<reqwest::Error> for AttemptFailure {
    fn from(error: reqwest::Error) -> Self {
        // The text of the error would contain the URL, which may carry a gateway's key. Its causes go to
        // the operator's log.
        let causes = domain::cause::with_causes("the connection failed", std::error::Error::source(&error));
        tracing::warn!(error = causes, "no reply from the model provider");
        Self::Transient {
            what: if error.is_connect() {
                "cannot be reached"
            } else {
                "broke the connection"
            }
            .to_owned(),
            after: None,
            is_unreachable: error.is_connect(),
        }
    }
}

/// Error as the provider words it, in any dialect.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ProviderError {
    class: Option<String>,
    message: String,
    /// Time in the details of the error, after which the next attempt may succeed.
    after: Option<Duration>,
}

#[derive(Default, Deserialize)]
struct ErrorBody {
    #[serde(default)]
    error: ErrorDetail,
    #[serde(default, alias = "Message")]
    message: Option<String>,
    #[serde(default, deserialize_with = "deserialize_text")]
    detail: Option<String>,
}

/// Deserializes a text; any other type counts as absent.
fn deserialize_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(value.as_str().map(str::to_owned))
}

#[derive(Default, Deserialize)]
#[serde(untagged)]
enum ErrorDetail {
    Detailed {
        #[serde(rename = "type", default)]
        class: Option<String>,
        #[serde(default)]
        code: Option<serde_json::Value>,
        /// Class of Google's APIs, whose `code` is the status.
        #[serde(default)]
        status: Option<serde_json::Value>,
        #[serde(default)]
        message: Option<String>,
        #[serde(default)]
        details: serde_json::Value,
        #[serde(default)]
        metadata: serde_json::Value,
    },
    Text(String),
    #[default]
    Nothing,
}

/// Returns the error in a list: Gemini's compatible API wraps an error in one. Other values stay.
pub(super) fn unwrap_error(value: serde_json::Value) -> serde_json::Value {
    let is_error = |item: &serde_json::Value| {
        ["error", "message", "detail"]
            .iter()
            .any(|field| item.get(field).is_some())
    };
    if !value.get(0).is_some_and(is_error) {
        return value;
    }
    let serde_json::Value::Array(mut items) = value else {
        return value;
    };
    items.swap_remove(0)
}

/// Returns true for a real error: some servers send an empty one in every event.
pub(super) fn is_real_error(error: &serde_json::Value) -> bool {
    match error {
        serde_json::Value::Null | serde_json::Value::Bool(false) => false,
        serde_json::Value::String(text) => !text.is_empty(),
        serde_json::Value::Object(fields) => !fields.is_empty(),
        serde_json::Value::Bool(true) | serde_json::Value::Number(_) | serde_json::Value::Array(_) => true,
    }
}

/// Returns the message of the provider behind `OpenRouter`, whose own message is the same for each of them.
fn find_upstream_message(metadata: &serde_json::Value) -> Option<String> {
    let raw = metadata["raw"].as_str()?;
    let said = ProviderError::read(raw.as_bytes(), None);
    Some(said.message).filter(|message| !message.is_empty())
}

const CLASS_CHARS: usize = 64;

/// Returns true if a class is a name, not a sentence.
fn is_class_name(class: &str) -> bool {
    class.len() <= CLASS_CHARS && class.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl ProviderError {
    /// Reads an error body. `named` is a class from elsewhere, such as a header.
    pub(super) fn read(body: &[u8], named: Option<&str>) -> Self {
        let parsed =
            serde_json::from_slice(body).and_then(|value| ErrorBody::deserialize(unwrap_error(value)));
        let is_json = parsed.is_ok();
        let parsed = parsed.unwrap_or_default();
        let (class, message, details) = match parsed.error {
            ErrorDetail::Detailed {
                class,
                code,
                status,
                message,
                details,
                metadata,
            } => {
                let text = |value: Option<serde_json::Value>| Some(value?.as_str()?.to_owned());
                let classes = [text(code), class, text(status)];
                let class = classes.into_iter().flatten().find(|class| !class.is_empty());
                (class, find_upstream_message(&metadata).or(message), details)
            }
            ErrorDetail::Text(text) => (None, Some(text), serde_json::Value::Null),
            ErrorDetail::Nothing => (None, None, serde_json::Value::Null),
        };
        let plain = || {
            let text = String::from_utf8_lossy(body).trim().to_owned();
            (!is_json && !text.starts_with('<')).then_some(text)
        };
        Self {
            class: named
                .map(str::to_owned)
                .or(class)
                .filter(|class| is_class_name(class)),
            message: message
                .or(parsed.message)
                .or(parsed.detail)
                .or_else(plain)
                .unwrap_or_default(),
            after: retry_hint::read_details(&details),
        }
    }

    /// Creates an error from an event.
    pub(super) fn new(class: &str, message: &str) -> Self {
        Self {
            class: Some(class.to_owned()).filter(|class| is_class_name(class)),
            message: message.to_owned(),
            after: None,
        }
    }

    /// Reads the error of an event: an object or a sentence.
    pub(super) fn of_event(error: &serde_json::Value) -> Self {
        let text = |field: &str| error[field].as_str().unwrap_or_default();
        let classes = ["code", "type", "status"].map(text);
        let class = classes
            .into_iter()
            .find(|class| !class.is_empty())
            .unwrap_or_default();
        let upstream = find_upstream_message(&error["metadata"]);
        let message = error.as_str().unwrap_or_else(|| text("message"));
        Self {
            after: retry_hint::read_details(&error["details"]),
            ..Self::new(class, upstream.as_deref().unwrap_or(message))
        }
    }

    /// Renders status and class. Some gateways repeat the status as the class; it appears once.
    fn words(&self, status: Option<u16>) -> String {
        let status = status.map(|status| status.to_string());
        let class = self.class.clone().filter(|class| Some(class) != status.as_ref());
        let words: Vec<String> = [status, class].into_iter().flatten().collect();
        if words.is_empty() {
            "an error without a reason".to_owned()
        } else {
            words.join(" ")
        }
    }

    /// Creates the refusal for a cause.
    pub(super) fn refusal(&self, cause: RefusalCause, status: Option<u16>) -> AttemptFailure {
        AttemptFailure::Final(ProviderRefusal {
            cause,
            class: self.words(status),
            quote: quote_message(&self.message),
        })
    }

    /// Creates a transient failure with the provider's message. Without a time from elsewhere, that of the error
    /// itself counts.
    pub(super) fn passing(&self, what: &str, after: Option<Duration>) -> AttemptFailure {
        let quote = quote_message(&self.message);
        AttemptFailure::Transient {
            what: if quote.is_empty() {
                what.to_owned()
            } else {
                format!("{what}; it says \"{quote}\"")
            },
            after: after
                .or(self.after)
                .or_else(|| retry_hint::read_message(&self.message)),
            is_unreachable: false,
        }
    }

    /// Converts an error in the middle of a stream. It is final only if the request itself causes it.
    pub(super) fn in_stream(&self) -> AttemptFailure {
        match self.kind() {
            Some(ProviderErrorKind::Final(cause)) => self.refusal(cause, None),
            Some(ProviderErrorKind::StaleThinking) => AttemptFailure::StaleThinking,
            None => self.passing("reported an error in the middle of its reply", None),
        }
    }

    /// Returns true if the error names the time of the next attempt. Google words its limit for a minute like an
    /// exhausted account.
    fn names_time(&self) -> bool {
        self.after.is_some() || retry_hint::read_message(&self.message).is_some()
    }

    /// Returns true if the model takes no image by the error's message. llama.cpp reports it as a failure of the
    /// server.
    pub(super) fn says_no_images(&self) -> bool {
        let message = self.message.to_ascii_lowercase();
        message.contains("image input is not supported")
    }

    /// Classifies the error, if more than a plain refusal is known.
    pub(super) fn kind(&self) -> Option<ProviderErrorKind> {
        let class = self.class.as_deref().unwrap_or_default().to_ascii_lowercase();
        let message = self.message.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
        let is = |classes: &[&str]| classes.iter().any(|known| class == *known);
        if let Some(cause) = parse_rate_limit(&message) {
            Some(ProviderErrorKind::Final(cause))
        } else if is(&["context_length_exceeded", "model_context_window_exceeded"]) || says(TOO_LONG) {
            Some(ProviderErrorKind::Final(RefusalCause::ContextTooLong))
        } else if is(&["invalid_encrypted_content"]) || says(STALE_THINKING) {
            Some(ProviderErrorKind::StaleThinking)
        } else if is(&NO_CREDIT_CLASSES) || (says(&NO_CREDIT) && !self.names_time()) {
            Some(ProviderErrorKind::Final(RefusalCause::NoCredit))
        } else if is(&[
            "not_found_error",
            "model_not_found",
            "deploymentnotfound",
            "resourcenotfoundexception",
        ]) || says(&NO_MODEL)
        {
            Some(ProviderErrorKind::Final(RefusalCause::NoModel))
        } else if is(&[
            "authentication_error",
            "permission_error",
            "invalid_api_key",
            "accessdeniedexception",
            "unrecognizedclientexception",
            "invalidsignatureexception",
            "expiredtokenexception",
        ]) {
            Some(ProviderErrorKind::Final(RefusalCause::CredentialsRefused))
        } else if is(&["invalid_request_error", "invalid_prompt", "validationexception"])
            || is_image_class(&class)
            || self.says_no_images()
        {
            Some(ProviderErrorKind::Final(RefusalCause::Request))
        } else {
            None
        }
    }
}

/// Returns true for a class about an image of the request, such as `invalid_base64_image`. Responses reports
/// them in the middle of a stream too.
fn is_image_class(class: &str) -> bool {
    class.split('_').any(|word| word == "image")
}

/// Class of an error, as far as its text shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProviderErrorKind {
    Final(RefusalCause),
    StaleThinking,
}

/// Parses the numbers of a rate limit that one request exceeds: "Limit 30000, Requested 40000". If the
/// request is below the limit, waiting helps and the result is `None`.
fn parse_rate_limit(message: &str) -> Option<RefusalCause> {
    let is_rate = [
        "per min",
        "per-min",
        "tpm",
        "per day",
        "tpd",
        "rate limit",
        "rate_limit",
    ];
    if !is_rate.iter().any(|word| message.contains(word)) {
        return None;
    }
    let (limit, requested) = (
        parse_number_after(message, "limit")?,
        parse_number_after(message, "requested")?,
    );
    (requested > limit).then_some(RefusalCause::AboveRateLimit { limit, requested })
}

/// Returns the number that follows a word directly, as in `limit: 30,000`.
fn parse_number_after(message: &str, word: &str) -> Option<u64> {
    message.match_indices(word).find_map(|(at, _)| {
        let rest = message[at + word.len()..].trim_start_matches([' ', ':', '=', '`', '"', '\'', '*']);
        let digits: String = rest
            .chars()
            .take_while(|c| c.is_ascii_digit() || matches!(c, ',' | '_'))
            .filter(char::is_ascii_digit)
            .collect();
        digits.parse().ok()
    })
}

// Error classes for an account without credit.
const NO_CREDIT_CLASSES: [&str; 4] = [
    "insufficient_quota",
    "billing_error",
    "credit_balance_too_low",
    "insufficient_balance",
];

// Messages for an account without credit.
const NO_CREDIT: [&str; 5] = [
    "credit balance is too low",
    "exceeded your current quota",
    "insufficient balance",
    "insufficient credits",
    "requires more credits",
];

// Messages of gateways for an unknown model, under a less specific class.
const NO_MODEL: [&str; 3] = [
    "invalid model name",
    "model does not exist",
    "is not a valid model id",
];

// Messages of providers and servers for a prompt that is too long.
const TOO_LONG: &[&str] = &[
    "exceed context limit",
    "prompt is too long",
    "input is too long",
    "maximum context length",
    "context window",
    "context length",
    "exceeds the available context size",
    "too many input tokens",
    "exceeds the maximum number of tokens allowed",
    "maximum prompt length",
    "exceeded model token limit",
    "prompt exceeds max length",
    "tokens in request more than max tokens allowed",
];

// Messages of Anthropic for a thinking block that does not match the messages before it, is from another model, or is
// at the end of a reply; messages of `OpenAI` for reasoning that it cannot decrypt, or without the item that it led to.
const STALE_THINKING: &[&str] = &[
    "invalid `signature` in `thinking`",
    "bound to a different",
    "blocks in the latest assistant message cannot be modified",
    "the final block in an assistant message cannot be",
    "encrypted content",
    "of type 'reasoning' was provided without its required following item",
    "without its required 'reasoning' item",
    "items are not persisted when `store` is set to false",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn classify_message(message: &str) -> Option<ProviderErrorKind> {
        ProviderError::new("rate_limit_exceeded", message).kind()
    }

    #[test]
    fn rate_limit_numbers_identify_oversized_request() {
        for message in [
            "Request too large for gpt-4o in organization o on tokens per min (TPM): Limit 30000, Requested 40000. The input \
             or output tokens must be reduced",
            "Rate limit reached: Limit: 30,000 / min, Requested: 40,000",
        ] {
            let wanted = RefusalCause::AboveRateLimit {
                limit: 30_000,
                requested: 40_000,
            };
            assert_eq!(
                classify_message(message),
                Some(ProviderErrorKind::Final(wanted)),
                "{message}"
            );
        }
        for message in [
            "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 25000, Requested 8000. Please try again \
             in 6s.",
            "This request would exceed your organization's rate limit of 30,000 input tokens per minute.",
            "Rate limit reached on requests per min (RPM): Limit 3, Used 3, Requested 1.",
            "too many tokens, limit",
        ] {
            assert_eq!(classify_message(message), None, "{message}");
        }
    }

    #[test]
    fn error_in_list_keeps_class_and_sentence() {
        let google = r#"{"error":{"code":400,"message":"Unknown name.","status":"INVALID_ARGUMENT"}}"#;
        for (body, class, message) in [
            (google, "INVALID_ARGUMENT", "Unknown name."),
            (
                r#"{"error":{"code":"model_not_found","type":"t","message":"No."}}"#,
                "model_not_found",
                "No.",
            ),
            (
                r#"{"error":{"type":"server_error","message":"No."}}"#,
                "server_error",
                "No.",
            ),
            (
                r#"{"error":{"code":"","type":"server_error","message":"No."}}"#,
                "server_error",
                "No.",
            ),
            (r#"{"error":"No."}"#, "", "No."),
            (r#"{"message":"No."}"#, "", "No."),
        ] {
            for body in [body.to_owned(), format!("[{body}]"), format!("[{body}\n,\n{{}}]")] {
                let read = ProviderError::read(body.as_bytes(), None);
                assert_eq!(read.class.as_deref().unwrap_or_default(), class, "{body}");
                assert_eq!(read.message, message, "{body}");
            }
        }
        let long = r#"[{"error":{"code":400,"message":"The input exceeds the context window."}}]"#;
        assert_eq!(
            ProviderError::read(long.as_bytes(), None).kind(),
            Some(ProviderErrorKind::Final(RefusalCause::ContextTooLong))
        );
        for body in ["[]", "[1]", "no"] {
            assert_eq!(ProviderError::read(body.as_bytes(), None).class, None, "{body}");
        }
    }

    #[test]
    fn error_of_router_has_words_of_its_provider() {
        let long =
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}"#;
        for (raw, message) in [
            (long, "prompt is too long"),
            ("Overloaded.", "Overloaded."),
            ("<html>", "Provider returned error"),
            ("", "Provider returned error"),
        ] {
            let error = serde_json::json!({
                "message": "Provider returned error", "code": 400, "metadata": { "raw": raw, "provider_name": "P" },
            });
            let body = serde_json::json!({ "error": error }).to_string();
            for read in [
                ProviderError::read(body.as_bytes(), None),
                ProviderError::of_event(&error),
            ] {
                assert_eq!(read.message, message, "{body}");
                let wanted = (raw == long).then_some(ProviderErrorKind::Final(RefusalCause::ContextTooLong));
                assert_eq!(read.kind(), wanted, "{body}");
            }
        }
    }

    #[test]
    fn credit_and_model_are_distinguished() {
        let (credit, model) = (RefusalCause::NoCredit, RefusalCause::NoModel);
        for (class, message, wanted) in [
            (
                "invalid_request_error",
                "Your credit balance is too low to access the API.",
                credit,
            ),
            ("insufficient_quota", "You exceeded your current quota", credit),
            (
                "402",
                "This request requires more credits, or fewer max_tokens.",
                credit,
            ),
            ("model_not_found", "The model `x` does not exist", model),
            (
                "400",
                "/chat/completions: Invalid model name passed in model=x",
                model,
            ),
        ] {
            assert_eq!(
                ProviderError::new(class, message).kind(),
                Some(ProviderErrorKind::Final(wanted)),
                "{message}"
            );
        }
    }

    #[test]
    fn quota_with_named_time_is_no_lack_of_credit() {
        let says = "You exceeded your current quota, please check your plan and billing details.";
        let details = r#"[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]"#;
        for (message, details, waits) in [
            (format!("{says} limit: 10\\nPlease retry in 34.07s."), "[]", true),
            (says.to_owned(), details, true),
            (says.to_owned(), "[]", false),
        ] {
            let body = format!(
                r#"[{{"error":{{"code":429,"message":"{message}","status":"RESOURCE_EXHAUSTED","details":{details}}}}}]"#
            );
            let kind = ProviderError::read(body.as_bytes(), None).kind();
            let wanted = (!waits).then_some(ProviderErrorKind::Final(RefusalCause::NoCredit));
            assert_eq!(kind, wanted, "{body}");
        }
        // A class for it is certain.
        let class = ProviderError::new("insufficient_quota", "Please try again in 20s.");
        assert_eq!(
            class.kind(),
            Some(ProviderErrorKind::Final(RefusalCause::NoCredit))
        );
    }

    #[test]
    fn unusable_reasoning_is_distinguished_from_refusal() {
        for (class, message) in [
            (
                "invalid_encrypted_content",
                "The content of item rs_1 could not be verified.",
            ),
            (
                "invalid_request_error",
                "Encrypted content is not supported with this model.",
            ),
            (
                "invalid_request_error",
                "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
            ),
            (
                "invalid_request_error",
                "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
            ),
            (
                "invalid_request_error",
                "messages.17: The final block in an assistant message cannot be `thinking`.",
            ),
        ] {
            assert_eq!(
                ProviderError::new(class, message).kind(),
                Some(ProviderErrorKind::StaleThinking),
                "{message}"
            );
        }
        assert_eq!(
            ProviderError::new("invalid_prompt", "Your prompt was flagged.").kind(),
            Some(ProviderErrorKind::Final(RefusalCause::Request))
        );
    }
}

//! Differences between providers. A new dialect is one file and one line in [`DIALECTS`].

use std::{borrow::Cow, sync::Arc};

use futures::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{
    ClientError, anthropic,
    failure::AttemptFailure,
    openai, responses,
    stream::{ReplyCollector, StreamFraming},
    tool_name::ToolNames,
};
use crate::config::ModelSettings;
use crate::transcript::{MessagePart, ModelTranscript, TranscriptMessage};

/// Registry of all dialects.
pub(super) static DIALECTS: &[&dyn ModelDialect] = &[
    &anthropic::AnthropicDialect,
    &openai::OpenAiDialect,
    &responses::ResponsesDialect,
    #[cfg(feature = "bedrock")]
    &super::bedrock::BedrockDialect,
];

/// Returns the dialect with this name.
pub(super) fn find_dialect(name: &str) -> Option<&'static dyn ModelDialect> {
    DIALECTS.iter().copied().find(|dialect| dialect.name() == name)
}

/// Invalid setting: its key within the section, and the problem.
pub(super) type SettingProblem = (&'static str, &'static str);

/// API of one kind of provider.
pub(super) trait ModelDialect: Sync {
    /// Name in settings and telemetry.
    fn name(&self) -> &'static str;

    /// Validates the settings that this dialect needs.
    fn check(&self, settings: &ModelSettings) -> Result<(), SettingProblem>;

    /// Address of the dialect's own provider; absent where it depends on other settings.
    fn default_address(&self) -> Option<&'static str> {
        None
    }

    /// URL that replies are requested from.
    fn url(&self, settings: &ModelSettings) -> String;

    /// Headers of every request, credentials included.
    fn headers(&self, settings: &ModelSettings) -> Result<HeaderMap, ClientError>;

    /// Signer of each request, where headers alone are not enough.
    fn signer(&self, _settings: &ModelSettings) -> Result<Option<Arc<dyn RequestSigner>>, ClientError> {
        Ok(None)
    }

    /// Body of the request.
    fn body(&self, ask: &ModelRequest<'_>) -> Value;

    /// Framing of the events in a response.
    fn framing(&self) -> StreamFraming {
        StreamFraming::ServerSentEvents
    }

    /// Collector of the reply to a request with these tools.
    fn collector(&self, tools: ToolNames) -> Box<dyn ReplyCollector>;
}

/// Signs a request before it is sent.
pub(super) trait RequestSigner: Send + Sync {
    /// Adds the signature to the request.
    fn sign<'a>(&'a self, request: &'a mut reqwest::Request) -> BoxFuture<'a, Result<(), AttemptFailure>>;
}

/// One request to one model.
pub(super) struct ModelRequest<'a> {
    pub(super) settings: &'a ModelSettings,
    pub(super) provider: &'a str,
    pub(super) transcript: &'a ModelTranscript,
    /// False after the provider refused the thinking of its earlier reply.
    pub(super) keep_thinking: bool,
    /// False for a model without images, and after the provider refused them.
    pub(super) keep_images: bool,
}

/// Part of a user's message as this model gets it.
pub(super) enum ShownPart<'a> {
    Text(Cow<'a, str>),
    Image {
        media_type: &'static str,
        /// Content in base64.
        data: &'a str,
    },
}

impl ModelRequest<'_> {
    /// Returns the parts of a message that this model accepts: an image that it does not see becomes its name.
    pub(super) fn shown_parts<'p>(&self, parts: &'p [MessagePart]) -> Vec<ShownPart<'p>> {
        let shown = parts.iter().map(|part| match part {
            MessagePart::Text(text) => ShownPart::Text(Cow::Borrowed(text)),
            MessagePart::Image(image) => match image.data.as_deref().filter(|_| self.keep_images) {
                Some(data) => ShownPart::Image {
                    media_type: image.format.media_type(),
                    data,
                },
                None => ShownPart::Text(Cow::Owned(image.placeholder())),
            },
        });
        shown.collect()
    }

    /// Returns true if this provider and model wrote a block that only they understand. Records of earlier
    /// releases name neither.
    pub(super) fn owns(&self, dialect: &str, wanted: &str, provider: &str, model: &str) -> bool {
        let known = provider.is_empty() || (provider == self.provider && model == self.settings.name);
        self.keep_thinking && dialect == wanted && known
    }
}

/// Returns the id of a call on the wire: its place in the conversation, in a form that every provider
/// accepts. Ids of models repeat, are missing, or are refused by the next provider.
pub(super) fn wire_id(reply: usize, call: usize) -> String {
    format!("c{:05}{:03}", reply % 100_000, call % 1_000)
}

/// Returns true from the second turn of a conversation on.
pub(super) fn is_continued(transcript: &ModelTranscript) -> bool {
    transcript
        .messages
        .iter()
        .any(|message| matches!(message, TranscriptMessage::Assistant(_)))
}

/// Returns the base address without a version at its end.
pub(super) fn base_address<'a>(settings: &'a ModelSettings, default: &'a str) -> &'a str {
    let base = settings
        .base_url
        .as_deref()
        .unwrap_or(default)
        .trim_end_matches('/');
    base.strip_suffix("/v1").unwrap_or(base)
}

/// Converts a credential to a header that debug output hides.
pub(crate) fn secret_header(prefix: &str, secret: &SecretString) -> Result<HeaderValue, ClientError> {
    let text = format!("{prefix}{}", secret.expose_secret());
    let mut value = HeaderValue::from_str(&text).map_err(|_| ClientError::Credential)?;
    // Debug output of a request must not show it.
    value.set_sensitive(true);
    Ok(value)
}

/// Adds the headers of the settings, which replace those of the dialect.
pub(super) fn extra_headers(settings: &ModelSettings, headers: &mut HeaderMap) -> Result<(), ClientError> {
    for (name, value) in &settings.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| ClientError::Header(name.clone()))?;
        headers.insert(name, secret_header("", value)?);
    }
    Ok(())
}

/// Returns the error for a missing key, with the key that a user would search for.
pub(super) fn missing_key_problem(settings: &ModelSettings) -> SettingProblem {
    match &settings.api_key {
        None => ("api_key", "is missing"),
        Some(_) => ("api_key", "must be set"),
    }
}

/// Returns the API key unless it is empty.
pub(super) fn find_api_key(settings: &ModelSettings) -> Option<&SecretString> {
    find_secret(settings.api_key.as_ref())
}

/// Returns the OAuth token or bearer token unless it is empty.
pub(super) fn find_auth_token(settings: &ModelSettings) -> Option<&SecretString> {
    find_secret(settings.auth_token.as_ref())
}

/// Returns a credential unless it is empty: in a cluster the file of the key exists for every provider.
pub(crate) fn find_secret(secret: Option<&SecretString>) -> Option<&SecretString> {
    secret.filter(|secret| !secret.expose_secret().is_empty())
}

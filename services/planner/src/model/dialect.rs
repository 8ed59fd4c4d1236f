//! What differs between providers. A further dialect is one file and one line in [`DIALECTS`].

use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{
    ClientError, anthropic, bedrock,
    failure::Failure,
    openai,
    stream::{Collect, Framing},
    tool_name::ToolNames,
};
use crate::config::ModelSettings;
use crate::transcript::{Message, Transcript};

/// Every dialect.
pub(super) static DIALECTS: [&dyn Dialect; 3] = [&anthropic::Anthropic, &openai::OpenAi, &bedrock::Bedrock];

/// The dialect of a name.
pub(super) fn named(name: &str) -> Option<&'static dyn Dialect> {
    DIALECTS.into_iter().find(|dialect| dialect.name() == name)
}

/// A setting that does not fit: its key within the section and what is wrong.
pub(super) type Misfit = (&'static str, &'static str);

/// How one kind of provider is spoken to.
pub(super) trait Dialect: Sync {
    /// The name in settings and telemetry.
    fn name(&self) -> &'static str;

    /// Looks at what this dialect needs of the settings.
    fn check(&self, settings: &ModelSettings) -> Result<(), Misfit>;

    /// Where a reply is asked for.
    fn url(&self, settings: &ModelSettings) -> String;

    /// Headers of every request, credentials included.
    fn headers(&self, settings: &ModelSettings) -> Result<HeaderMap, ClientError>;

    /// What signs each request, where headers alone do not do.
    fn signer(&self, _settings: &ModelSettings) -> Result<Option<Arc<dyn Sign>>, ClientError> {
        Ok(None)
    }

    /// The request.
    fn body(&self, ask: &Ask<'_>) -> Value;

    /// How events are told apart in an answer.
    fn framing(&self) -> Framing {
        Framing::ServerSentEvents
    }

    /// Puts a reply together to a question that offers these tools.
    fn collector(&self, tools: ToolNames) -> Box<dyn Collect>;
}

/// Signs a request before it is sent.
pub(super) trait Sign: Send + Sync {
    /// Adds the signature.
    fn sign<'a>(&'a self, request: &'a mut reqwest::Request) -> BoxFuture<'a, Result<(), Failure>>;
}

/// One question to one model.
pub(super) struct Ask<'a> {
    pub(super) settings: &'a ModelSettings,
    pub(super) provider: &'a str,
    pub(super) transcript: &'a Transcript,
    /// False when the provider refused the thinking that it was sent back.
    pub(super) keep_thinking: bool,
}

impl Ask<'_> {
    /// Whether a block that only its provider understands came from this provider and model. Records of former releases
    /// name neither.
    pub(super) fn owns(&self, dialect: &str, wanted: &str, provider: &str, model: &str) -> bool {
        let known = provider.is_empty() || (provider == self.provider && model == self.settings.name);
        self.keep_thinking && dialect == wanted && known
    }
}

/// The id of a call on the wire: by its place in the conversation, in a form that every provider takes. Ids of models repeat,
/// are missing, or are refused by the next provider.
pub(super) fn wire_id(reply: usize, call: usize) -> String {
    format!("c{:05}{:03}", reply % 100_000, call % 1_000)
}

/// True from the second turn of a conversation on.
pub(super) fn goes_on(transcript: &Transcript) -> bool {
    transcript
        .messages
        .iter()
        .any(|message| matches!(message, Message::Assistant(_)))
}

/// A base address without the version at its end.
pub(super) fn base<'a>(settings: &'a ModelSettings, default: &'a str) -> &'a str {
    let base = settings
        .base_url
        .as_deref()
        .unwrap_or(default)
        .trim_end_matches('/');
    base.strip_suffix("/v1").unwrap_or(base)
}

/// A credential as a header, never shown.
pub(super) fn secret_header(prefix: &str, secret: &SecretString) -> Result<HeaderValue, ClientError> {
    let text = format!("{prefix}{}", secret.expose_secret());
    let mut value = HeaderValue::from_str(&text).map_err(|_| ClientError::Credential)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The headers of the settings, after those of the dialect.
pub(super) fn extra_headers(settings: &ModelSettings, headers: &mut HeaderMap) -> Result<(), ClientError> {
    for (name, value) in &settings.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| ClientError::Header(name.clone()))?;
        headers.insert(name, secret_header("", value)?);
    }
    Ok(())
}

/// That there is no key, as a person would look for it.
pub(super) fn missing_key(settings: &ModelSettings) -> Misfit {
    match &settings.api_key {
        None => ("api_key", "is missing"),
        Some(_) => ("api_key", "must be set"),
    }
}

/// Whether a credential is set and not empty.
pub(super) fn is_set(secret: Option<&SecretString>) -> bool {
    secret.is_some_and(|secret| !secret.expose_secret().is_empty())
}

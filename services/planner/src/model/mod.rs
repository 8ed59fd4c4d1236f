//! The model: one request, one reply, whoever provides it.

mod anthropic;
mod openai;
mod retry;
mod stream;

#[cfg(test)]
pub(crate) mod tests;

use std::time::Duration;

use domain::Reply;
use reqwest::header::{HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use domain::Dialect;

use crate::config::ModelSettings;
use crate::run::Transcript;
use crate::telemetry;

/// Why a model call failed for good, in words for people; never a body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub(crate) struct ModelError {
    pub(crate) words: String,
    /// The same call may work later.
    pub(crate) transient: bool,
}

/// The client could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// The key holds characters that no HTTP header may hold.
    #[error("model.api_key: holds characters that an HTTP header cannot carry")]
    Key,
    /// The HTTP client could not be set up.
    #[error("the client for the model could not be set up: {0}")]
    Http(#[from] reqwest::Error),
}

/// A model behind one of the dialects.
pub(crate) struct ChatModel {
    settings: ModelSettings,
    http: reqwest::Client,
    url: String,
}

impl ChatModel {
    /// A client for the configured model; nothing is sent yet.
    ///
    /// # Errors
    /// [`ClientError`] when the key is no header value or TLS cannot be set up.
    pub(crate) fn new(settings: &ModelSettings) -> Result<Self, ClientError> {
        // The first one wins; another service of the same process may have been faster.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .default_headers(headers(settings)?)
            .connect_timeout(Duration::from_millis(settings.connect_timeout_ms))
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self {
            settings: settings.clone(),
            http,
            url: url(settings),
        })
    }

    /// Asks the model, with retries; dropping the future cancels the call.
    ///
    /// # Errors
    /// [`ModelError`] when the provider refuses or the retries are used up.
    pub(crate) async fn chat(&self, run: &str, transcript: &Transcript) -> Result<Reply, ModelError> {
        let body = match self.settings.dialect {
            Dialect::Anthropic => anthropic::body(&self.settings, transcript),
            Dialect::Openai => openai::body(&self.settings, transcript),
        };
        let call = telemetry::ChatCall::start(&self.settings, run);
        let outcome = retry::run(|| self.attempt(&body)).await;
        call.end(outcome.as_ref().ok());
        outcome
    }

    async fn attempt(&self, body: &Value) -> Result<Reply, retry::Failure> {
        let total = Duration::from_millis(self.settings.total_timeout_ms);
        let idle = Duration::from_millis(self.settings.idle_timeout_ms);
        let attempt = async {
            let sent = tokio::time::timeout(idle, self.http.post(&self.url).json(body).send()).await;
            let response = sent.map_err(|_| retry::Failure::transient("did not answer in time"))??;
            let response = retry::accepted(response, idle).await?;
            match self.settings.dialect {
                Dialect::Anthropic => stream::collect(response, idle, anthropic::Collector::default()).await,
                Dialect::Openai => stream::collect(response, idle, openai::Collector::default()).await,
            }
        };
        match tokio::time::timeout(total, attempt).await {
            Ok(outcome) => outcome,
            Err(_) => Err(retry::Failure::transient("did not finish its reply in time")),
        }
    }
}

fn headers(settings: &ModelSettings) -> Result<HeaderMap, ClientError> {
    let mut headers = HeaderMap::new();
    let key = &settings.api_key;
    match settings.dialect {
        Dialect::Anthropic => {
            headers.insert("x-api-key", secret_header("", key)?);
            headers.insert("anthropic-version", HeaderValue::from_static(anthropic::VERSION));
        }
        Dialect::Openai => {
            headers.insert(reqwest::header::AUTHORIZATION, secret_header("Bearer ", key)?);
        }
    }
    Ok(headers)
}

fn secret_header(prefix: &str, key: &SecretString) -> Result<HeaderValue, ClientError> {
    let mut value =
        HeaderValue::from_str(&format!("{prefix}{}", key.expose_secret())).map_err(|_| ClientError::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The endpoint: a base with or without its `/v1`.
fn url(settings: &ModelSettings) -> String {
    let (default, path) = match settings.dialect {
        Dialect::Anthropic => (anthropic::BASE_URL, "messages"),
        Dialect::Openai => (openai::BASE_URL, "chat/completions"),
    };
    let base = settings
        .base_url
        .as_deref()
        .unwrap_or(default)
        .trim_end_matches('/');
    let base = base.strip_suffix("/v1").unwrap_or(base);
    format!("{base}/v1/{path}")
}

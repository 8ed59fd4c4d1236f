//! Calls to one model of one provider.

use std::{sync::Arc, time::Duration};

use domain::{ModelReply, ReplyBlock};
use futures::StreamExt as _;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    ClientError,
    dialect::{self, ModelDialect, ModelRequest, RequestSigner},
    failure::{self, AttemptFailure, ProviderRefusal, RefusalCause},
    prices,
    retry::{self, RetryPatience},
    roles::ChainEntry,
    stream,
    target::ModelTarget,
    tool_name::ToolNames,
};
use crate::config::{ModelPrice, ModelSettings};
use crate::transcript::ModelTranscript;

// Time in which a provider that failed is tried after the others.
const REST: Duration = Duration::from_secs(60);

/// Provider: a connection with its credentials, shared by all roles.
pub(super) struct ProviderClient {
    dialect: &'static dyn ModelDialect,
    http: reqwest::Client,
    signer: Option<Arc<dyn RequestSigner>>,
    resting: Mutex<Option<Instant>>,
}

impl ProviderClient {
    /// Creates a client without sending a request.
    ///
    /// # Errors
    /// [`ClientError`] when a credential is not a valid header value or TLS setup fails.
    pub(super) fn new(settings: &ModelSettings) -> Result<Self, ClientError> {
        // Fails if another service of the same process installed a provider first, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dialect = dialect::find_dialect(&settings.dialect)
            .ok_or_else(|| ClientError::Dialect(settings.dialect.clone()))?;
        let http = reqwest::Client::builder()
            .default_headers(dialect.headers(settings)?)
            .connect_timeout(Duration::from_millis(settings.connect_timeout_ms))
            // A redirect could send the credential to another host.
            .redirect(reqwest::redirect::Policy::none());
        let http = webproxy::configure_client(http)?.build()?;
        Ok(Self {
            dialect,
            http,
            signer: dialect.signer(settings)?,
            resting: Mutex::new(None),
        })
    }

    /// Returns true for a while after a failure.
    pub(super) fn is_resting(&self) -> bool {
        let until = *self.resting.lock();
        until.is_some_and(|until| until > Instant::now())
    }

    fn rest(&self, failed: bool) {
        let until = failed.then(|| Instant::now() + REST);
        *self.resting.lock() = until;
    }
}

/// Model of a provider.
#[derive(Clone)]
pub(super) struct ModelLink {
    pub(super) provider: Arc<ProviderClient>,
    pub(super) place: ChainEntry,
    pub(super) price: Option<ModelPrice>,
}

/// Parts of a conversation that a request contains, which some providers refuse.
#[derive(Clone, Copy)]
struct SentParts {
    thinking: bool,
    images: bool,
}

impl ModelLink {
    /// Returns the name of the dialect.
    pub(super) fn dialect(&self) -> &'static str {
        self.provider.dialect.name()
    }

    /// Returns the model as messages name it.
    pub(super) fn addressee(&self) -> ModelTarget {
        ModelTarget::of(&self.place.provider, &self.place.settings)
    }

    /// Requests a reply, with retries.
    ///
    /// # Errors
    /// The failure of the last attempt.
    pub(super) async fn chat(
        &self,
        transcript: &ModelTranscript,
        patience: RetryPatience,
    ) -> Result<ModelReply, AttemptFailure> {
        let mut parts = SentParts {
            thinking: true,
            images: self.place.settings.takes_images(),
        };
        let outcome = loop {
            match Box::pin(self.asked(transcript, patience, parts)).await {
                Ok(reply) => break Ok(reply),
                Err(failure) => match self.omit_refused(&failure, transcript, parts) {
                    // Each part is omitted once, so the third request is the last one.
                    Some(fewer) => parts = fewer,
                    None => break Err(failure),
                },
            }
        };
        let of_the_provider = |failure: &AttemptFailure| failure::is_provider_fault(failure.kind());
        // A faulty request says nothing about the provider, so it does not move it behind the others.
        self.provider.rest(outcome.as_ref().is_err_and(of_the_provider));
        outcome.map(|reply| self.stamped(reply))
    }

    /// Returns the parts without those that the provider refused; `None` if the failure has another cause.
    fn omit_refused(
        &self,
        failure: &AttemptFailure,
        transcript: &ModelTranscript,
        parts: SentParts,
    ) -> Option<SentParts> {
        match failure {
            // Thinking blocks are bound to their context; an edited or shortened conversation may
            // invalidate them.
            AttemptFailure::StaleThinking if parts.thinking => {
                tracing::warn!(
                    provider = self.place.provider,
                    "the provider refused its own thinking; it is asked without"
                );
                Some(SentParts {
                    thinking: false,
                    ..parts
                })
            }
            AttemptFailure::Final(refusal)
                if parts.images && transcript.has_images() && is_about_images(refusal) =>
            {
                tracing::warn!(
                    provider = self.place.provider,
                    model = self.place.settings.name,
                    "the provider refused the images; it is asked without, and the setting `images = false` saves a request"
                );
                Some(SentParts {
                    images: false,
                    ..parts
                })
            }
            AttemptFailure::StaleThinking
            | AttemptFailure::Final(_)
            | AttemptFailure::Transient { .. }
            | AttemptFailure::Garbage(_) => None,
        }
    }

    async fn asked(
        &self,
        transcript: &ModelTranscript,
        patience: RetryPatience,
        parts: SentParts,
    ) -> Result<ModelReply, AttemptFailure> {
        let body = self.provider.dialect.body(&ModelRequest {
            settings: &self.place.settings,
            provider: &self.place.provider,
            transcript,
            keep_thinking: parts.thinking,
            keep_images: parts.images,
        });
        let tools = ToolNames::of(&transcript.tools);
        retry::run_with_retries(patience, &self.addressee(), || self.attempt(&body, &tools)).await
    }

    async fn attempt(&self, body: &Value, tools: &ToolNames) -> Result<ModelReply, AttemptFailure> {
        let settings = &self.place.settings;
        let total = Duration::from_millis(settings.total_timeout_ms);
        let idle = Duration::from_millis(settings.idle_timeout_ms);
        let attempt = async {
            let request = self.request(body).await?;
            let sent = tokio::time::timeout(idle, self.provider.http.execute(request)).await;
            let response = sent.map_err(|_| AttemptFailure::transient("did not answer in time"))??;
            let response = retry::accept_response(response, idle).await?;
            let (framing, collector) = (
                self.provider.dialect.framing(),
                self.provider.dialect.collector(tools.clone()),
            );
            let is_named = framing.is_named_by(&response);
            let chunks = response
                .bytes_stream()
                .map(|chunk| chunk.map_err(AttemptFailure::from));
            stream::collect_reply(framing, is_named, Box::pin(chunks), idle, collector).await
        };
        match tokio::time::timeout(total, attempt).await {
            Ok(outcome) => outcome,
            Err(_) => Err(AttemptFailure::transient("did not finish its reply in time")),
        }
    }

    async fn request(&self, body: &Value) -> Result<reqwest::Request, AttemptFailure> {
        let url = self.provider.dialect.url(&self.place.settings);
        let mut request = self.provider.http.post(url).json(body).build()?;
        if let Some(signer) = &self.provider.signer {
            signer.sign(&mut request).await?;
        }
        Ok(request)
    }

    /// Adds provider, model and cost to a reply.
    pub(super) fn stamped(&self, mut reply: ModelReply) -> ModelReply {
        let asked = &self.place.settings.name;
        reply.provider.clone_from(&self.place.provider);
        if reply.model.is_empty() {
            reply.model.clone_from(asked);
        }
        // A deployment may have any name; the reply has the name of the real model.
        let price = self.price.or_else(|| prices::known_price(&reply.model));
        // A reply without token counts is not free: its cost is unknown.
        let price = price.filter(|_| is_counted(&reply));
        reply.cost_micros = price.map(|price| price.cost_micros(&reply.usage));
        for block in &mut reply.blocks {
            if let ReplyBlock::Opaque { provider, model, .. } = block {
                provider.clone_from(&self.place.provider);
                model.clone_from(asked);
            }
        }
        reply
    }
}

/// Returns true if a provider refused a request for its images: the model takes none, or not this one. A router such as
/// `OpenRouter` finds no provider of the model then.
fn is_about_images(refusal: &ProviderRefusal) -> bool {
    let quote = refusal.quote.to_ascii_lowercase();
    let words = ["image", "vision", "multimodal", "multi-modal"];
    let is_named = refusal.class.contains("image") || words.iter().any(|word| quote.contains(word));
    match refusal.cause {
        RefusalCause::Request => is_named,
        RefusalCause::NoModel => quote.contains("image input"),
        RefusalCause::ContextTooLong
        | RefusalCause::CredentialsRefused
        | RefusalCause::NoCredit
        | RefusalCause::AboveRateLimit { .. }
        | RefusalCause::Unsent(_) => false,
    }
}

/// Returns true if the provider counted the tokens of a reply. No prompt is empty.
fn is_counted(reply: &ModelReply) -> bool {
    let usage = &reply.usage;
    usage.input_tokens > 0 && (usage.output_tokens > 0 || reply.blocks.is_empty())
}

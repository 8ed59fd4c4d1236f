//! Calls to one model of one provider.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use domain::{Block, Reply};
use futures::StreamExt as _;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    ClientError,
    addressee::Addressee,
    dialect::{self, Ask, Dialect, Sign},
    failure::{self, Failure},
    prices,
    retry::{self, Patience},
    roles::Place,
    stream,
    tool_name::ToolNames,
};
use crate::config::{ModelSettings, Price};
use crate::transcript::Transcript;

// Time in which a provider that failed is tried after the others.
const REST: Duration = Duration::from_secs(60);

/// Provider: a connection with its credentials, shared by all roles.
pub(super) struct Provider {
    dialect: &'static dyn Dialect,
    http: reqwest::Client,
    signer: Option<Arc<dyn Sign>>,
    resting: Mutex<Option<Instant>>,
}

impl Provider {
    /// Creates a client without sending a request.
    ///
    /// # Errors
    /// [`ClientError`] when a credential is not a valid header value or TLS setup fails.
    pub(super) fn new(settings: &ModelSettings) -> Result<Self, ClientError> {
        // Fails if another service of the same process installed a provider first, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dialect = dialect::named(&settings.dialect)
            .ok_or_else(|| ClientError::Dialect(settings.dialect.clone()))?;
        let http = reqwest::Client::builder()
            .default_headers(dialect.headers(settings)?)
            .connect_timeout(Duration::from_millis(settings.connect_timeout_ms))
            // A redirect could send the credential to another host.
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self {
            dialect,
            http,
            signer: dialect.signer(settings)?,
            resting: Mutex::new(None),
        })
    }

    /// Returns true for a while after a failure.
    pub(super) fn is_resting(&self) -> bool {
        let until = *self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| until > Instant::now())
    }

    fn rest(&self, failed: bool) {
        let until = failed.then(|| Instant::now() + REST);
        *self.resting.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

/// Model of a provider.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) provider: Arc<Provider>,
    pub(super) place: Place,
    pub(super) price: Option<Price>,
}

impl Link {
    /// Returns the name of the dialect.
    pub(super) fn dialect(&self) -> &'static str {
        self.provider.dialect.name()
    }

    /// Returns the model as messages name it.
    pub(super) fn addressee(&self) -> Addressee {
        Addressee::of(&self.place.provider, &self.place.settings)
    }

    /// Requests a reply, with retries.
    ///
    /// # Errors
    /// The failure of the last attempt.
    pub(super) async fn chat(&self, transcript: &Transcript, patience: Patience) -> Result<Reply, Failure> {
        let outcome = match self.asked(transcript, patience, true).await {
            Err(Failure::StaleThinking) => {
                tracing::warn!(
                    provider = self.place.provider,
                    "the provider refused its own thinking; it is asked without"
                );
                // Thinking blocks are bound to their context; an edited or shortened conversation may
                // invalidate them.
                self.asked(transcript, patience, false).await
            }
            outcome => outcome,
        };
        let of_the_provider = |failure: &Failure| failure::is_of_the_provider(failure.kind());
        self.provider.rest(outcome.as_ref().is_err_and(of_the_provider));
        outcome.map(|reply| self.stamped(reply))
    }

    async fn asked(
        &self,
        transcript: &Transcript,
        patience: Patience,
        keep_thinking: bool,
    ) -> Result<Reply, Failure> {
        let body = self.provider.dialect.body(&Ask {
            settings: &self.place.settings,
            provider: &self.place.provider,
            transcript,
            keep_thinking,
        });
        let tools = ToolNames::of(&transcript.tools);
        retry::run(patience, &self.addressee(), || self.attempt(&body, &tools)).await
    }

    async fn attempt(&self, body: &Value, tools: &ToolNames) -> Result<Reply, Failure> {
        let settings = &self.place.settings;
        let total = Duration::from_millis(settings.total_timeout_ms);
        let idle = Duration::from_millis(settings.idle_timeout_ms);
        let attempt = async {
            let request = self.request(body).await?;
            let sent = tokio::time::timeout(idle, self.provider.http.execute(request)).await;
            let response = sent.map_err(|_| Failure::transient("did not answer in time"))??;
            let response = retry::accepted(response, idle).await?;
            let (framing, collector) = (
                self.provider.dialect.framing(),
                self.provider.dialect.collector(tools.clone()),
            );
            let is_named = framing.is_named_by(&response);
            let chunks = response.bytes_stream().map(|chunk| chunk.map_err(Failure::from));
            stream::collect(framing, is_named, Box::pin(chunks), idle, collector).await
        };
        match tokio::time::timeout(total, attempt).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::transient("did not finish its reply in time")),
        }
    }

    async fn request(&self, body: &Value) -> Result<reqwest::Request, Failure> {
        let url = self.provider.dialect.url(&self.place.settings);
        let mut request = self.provider.http.post(url).json(body).build()?;
        if let Some(signer) = &self.provider.signer {
            signer.sign(&mut request).await?;
        }
        Ok(request)
    }

    /// Adds provider, model and cost to a reply.
    pub(super) fn stamped(&self, mut reply: Reply) -> Reply {
        let asked = &self.place.settings.name;
        reply.provider.clone_from(&self.place.provider);
        if reply.model.is_empty() {
            reply.model.clone_from(asked);
        }
        // A deployment may have any name; the reply has the name of the real model.
        let price = self.price.or_else(|| prices::known(&reply.model));
        // A reply without token counts is not free: its cost is unknown.
        let price = price.filter(|_| is_counted(&reply));
        reply.cost_micros = price.map(|price| price.cost_micros(&reply.usage));
        for block in &mut reply.blocks {
            if let Block::Opaque { provider, model, .. } = block {
                provider.clone_from(&self.place.provider);
                model.clone_from(asked);
            }
        }
        reply
    }
}

/// Returns true if the provider counted the tokens of a reply. No prompt is empty.
fn is_counted(reply: &Reply) -> bool {
    let usage = &reply.usage;
    usage.input_tokens > 0 && (usage.output_tokens > 0 || reply.blocks.is_empty())
}

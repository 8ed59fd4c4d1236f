//! The webhooks: raw bytes under a limit, a signature, one durable publish, and an answer.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use bytes::Bytes;
use opentelemetry::KeyValue;
use queue::{Queue, WebhookDelivery};
use serde::{Deserialize, de::IgnoredAny};
use tokio::{sync::Semaphore, time::timeout};

use crate::{
    config::Settings,
    hex,
    signature::{Keys, Verified},
};

const BODY_TIMEOUT: Duration = Duration::from_secs(10);
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(8);
const BODIES_AT_ONCE: usize = 16;
const ID_CHARS: usize = 200;

/// What the webhook handlers share. The queue comes when it is connected; until then they answer 503.
#[derive(Clone)]
pub(crate) struct Webhooks {
    inner: Arc<Inner>,
}

struct Inner {
    github: Keys,
    jira: Keys,
    queue: Arc<OnceLock<Queue>>,
    bodies: Semaphore,
    max_body_bytes: usize,
}

/// How one sender signs and names its deliveries.
struct Sender {
    source: &'static str,
    signature: &'static str,
    id: &'static str,
}

const GITHUB: Sender = Sender {
    source: "github",
    signature: "x-hub-signature-256",
    id: "x-github-delivery",
};
const JIRA: Sender = Sender {
    source: "jira",
    signature: "x-hub-signature",
    id: "x-atlassian-webhook-identifier",
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JiraName {
    webhook_event: String,
}

impl Webhooks {
    pub(crate) fn new(settings: &Settings, queue: Arc<OnceLock<Queue>>) -> Self {
        Self {
            inner: Arc::new(Inner {
                github: Keys::new(&settings.github_webhook_secrets),
                jira: Keys::new(&settings.jira_webhook_secrets),
                queue,
                bodies: Semaphore::new(BODIES_AT_ONCE),
                max_body_bytes: settings.max_body_bytes,
            }),
        }
    }

    pub(crate) fn router(&self) -> Router {
        Router::new()
            .route("/webhooks/github", post(github))
            .route("/webhooks/jira", post(jira))
            .with_state(self.clone())
    }

    async fn accept(&self, sender: &Sender, keys: &Keys, headers: &HeaderMap, body: Body) -> StatusCode {
        match self.take(sender, keys, headers, body).await {
            Ok(status) | Err(status) => status,
        }
    }

    async fn take(
        &self,
        sender: &Sender,
        keys: &Keys,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<StatusCode, StatusCode> {
        let busy = |_| StatusCode::SERVICE_UNAVAILABLE;
        let permit = timeout(BODY_TIMEOUT, self.inner.bodies.acquire())
            .await
            .map_err(busy)?;
        let _permit = permit.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
        let body = self.read(headers, body).await?;
        let verified = keys
            .verify(headers, sender.signature, body)
            .map_err(|_| StatusCode::UNAUTHORIZED)?;
        serde_json::from_slice::<IgnoredAny>(verified.body()).map_err(|_| StatusCode::BAD_REQUEST)?;
        self.publish(&delivery(sender, headers, &verified)).await
    }

    async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Bytes, StatusCode> {
        let limit = self.inner.max_body_bytes;
        let announced = headers
            .get("content-length")
            .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        if announced.is_some_and(|length| length > limit) {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        let read = timeout(BODY_TIMEOUT, axum::body::to_bytes(body, limit)).await;
        read.map_err(|_| StatusCode::REQUEST_TIMEOUT)?.map_err(|error| {
            let too_large = std::error::Error::source(&error)
                .is_some_and(|source| source.to_string().contains("length limit exceeded"));
            if too_large {
                StatusCode::PAYLOAD_TOO_LARGE
            } else {
                StatusCode::BAD_REQUEST
            }
        })
    }

    async fn publish(&self, delivery: &WebhookDelivery) -> Result<StatusCode, StatusCode> {
        let WebhookDelivery {
            id, source, event, ..
        } = delivery;
        let Some(queue) = self.inner.queue.get() else {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        };
        match timeout(PUBLISH_TIMEOUT, queue.deliveries().publish(delivery)).await {
            Ok(Ok(new)) => {
                count(source, new);
                tracing::info!(
                    delivery = id,
                    source,
                    event,
                    new,
                    bytes = delivery.body.len(),
                    "delivery stored"
                );
                Ok(StatusCode::ACCEPTED)
            }
            Ok(Err(error)) => {
                tracing::warn!(delivery = id, source, %error, "delivery not stored");
                Err(StatusCode::SERVICE_UNAVAILABLE)
            }
            Err(_) => {
                tracing::warn!(
                    delivery = id,
                    source,
                    "delivery not stored: nats did not acknowledge in time"
                );
                Err(StatusCode::SERVICE_UNAVAILABLE)
            }
        }
    }
}

/// Counts one stored delivery, and whether it was known.
fn count(source: &str, new: bool) {
    let labels = [
        KeyValue::new("journeyman.source", source.to_owned()),
        KeyValue::new("journeyman.new", new),
    ];
    opentelemetry::global::meter("journeyman")
        .u64_counter("journeyman.deliveries")
        .build()
        .add(1, &labels);
}

fn delivery(sender: &Sender, headers: &HeaderMap, verified: &Verified) -> WebhookDelivery {
    let body = verified.body().clone();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let id = header(sender.id).filter(|id| !id.is_empty() && id.len() <= ID_CHARS && id.is_ascii());
    let event = match sender.source {
        "github" => header("x-github-event").unwrap_or_default().to_owned(),
        _ => serde_json::from_slice::<JiraName>(&body)
            .map(|name| name.webhook_event)
            .unwrap_or_default(),
    };
    WebhookDelivery {
        source: sender.source.to_owned(),
        id: id.map_or_else(|| hex::sha256(&body), str::to_owned),
        event: event.chars().filter(|c| c.is_ascii_graphic()).take(60).collect(),
        received_at: bootstrap::now(),
        body,
    }
}

async fn github(State(webhooks): State<Webhooks>, headers: HeaderMap, body: Body) -> Response {
    webhooks
        .accept(&GITHUB, &webhooks.inner.github, &headers, body)
        .await
        .into_response()
}

async fn jira(State(webhooks): State<Webhooks>, headers: HeaderMap, body: Body) -> Response {
    webhooks
        .accept(&JIRA, &webhooks.inner.jira, &headers, body)
        .await
        .into_response()
}

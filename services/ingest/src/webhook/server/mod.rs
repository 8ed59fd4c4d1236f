//! Webhook endpoints: bounded body, signature check, one durable publish, answer.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, LazyLock, OnceLock},
    time::Duration,
};

use axum::{
    Router,
    extract::{ConnectInfo, Path, Request, State},
    http::{HeaderMap, StatusCode},
    routing::post,
};
use bootstrap::{
    http::{RequestBodies, ThrottledLog},
    settings::Error,
};
use domain::{InstanceName, ServiceOrigin, cause::format_error_chain, json};
use opentelemetry::{KeyValue, global, metrics::Counter};
use parking_lot::Mutex;
use queue::{Queue, WebhookDelivery};
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    config::{SecretList, Settings},
    hex,
    webhook::{
        automation::{AutomationKeys, AutomationRefusal, build_ticket_read_body, read_named_ticket},
        body::{InvalidBody, WebhookBody},
        networks::WebhookNetworks,
        payload::jira::TICKET_READ_EVENT,
        signature::{ClaimedSignature, VerifiedBody, WebhookKeys},
    },
};

// Senders choose both values, which go into every log line about the delivery.
const ID_CHARS: usize = 200;
const EVENT_CHARS: usize = 60;
// Pause between two log lines about refused webhooks. Any peer can cause them.
const LOG_PAUSE: Duration = Duration::from_secs(10);

// Time for the NATS client to reconnect to another server, and the pause between two checks.
const RECONNECTION: Duration = Duration::from_secs(1);
const RECONNECTION_PAUSE: Duration = Duration::from_millis(20);

/// State of the webhook handlers. They answer 503 until the queue is connected.
#[derive(Clone)]
pub(crate) struct WebhookHandlers {
    inner: Arc<WebhookState>,
}

struct WebhookState {
    github: SenderKeys<WebhookKeys>,
    jira: SenderKeys<WebhookKeys>,
    /// Secrets for web requests of Automation. None are required.
    automation: SenderKeys<AutomationKeys>,
    networks: WebhookNetworks,
    queue: Arc<OnceLock<Queue>>,
    bodies: RequestBodies,
    publish_timeout: Duration,
    refusals: ThrottledLog,
    /// Start of the current disconnection from NATS, as observed by webhooks.
    away_since: Mutex<Option<Instant>>,
}

impl WebhookState {
    /// Records the connection state. Returns the duration of the current disconnection.
    fn note_connection(&self, is_connected: bool) -> Duration {
        let mut since = self.away_since.lock();
        if is_connected {
            *since = None;
            Duration::ZERO
        } else {
            since.get_or_insert_with(Instant::now).elapsed()
        }
    }
}

/// Keys of one sender: for the default instance and for the named ones.
struct SenderKeys<K> {
    default: K,
    named: BTreeMap<InstanceName, K>,
}

impl<K> SenderKeys<K> {
    fn new(
        build: fn(&SecretList) -> K,
        default: &SecretList,
        named: &BTreeMap<InstanceName, SecretList>,
    ) -> Self {
        let named = named.iter();
        Self {
            default: build(default),
            named: named
                .map(|(name, secrets)| (name.clone(), build(secrets)))
                .collect(),
        }
    }

    /// Keys of an instance; `None` for a name that the settings do not contain.
    fn of(&self, instance: Option<&str>) -> Option<(Option<&InstanceName>, &K)> {
        let Some(wanted) = instance else {
            return Some((None, &self.default));
        };
        let mut named = self.named.iter();
        let (name, keys) = named.find(|(name, _)| name.as_str() == wanted)?;
        Some((Some(name), keys))
    }
}

/// Header conventions of one sender.
struct SenderHeaders {
    source: fn(Option<InstanceName>) -> ServiceOrigin,
    signature: &'static str,
    id: &'static str,
    /// Header with the event name; absent: the body names the event.
    event: Option<&'static str>,
}

const GITHUB: SenderHeaders = SenderHeaders {
    source: ServiceOrigin::GitHub,
    signature: "x-hub-signature-256",
    id: "x-github-delivery",
    event: Some("x-github-event"),
};
const JIRA: SenderHeaders = SenderHeaders {
    source: ServiceOrigin::Jira,
    signature: "x-hub-signature",
    id: "x-atlassian-webhook-identifier",
    event: None,
};

/// Refusal of a webhook: the status, and the reason for log and metrics. The sender gets no reason, because it may be any peer.
struct WebhookRefusal(StatusCode, &'static str);

static ACCEPTED: LazyLock<Counter<u64>> = LazyLock::new(|| {
    global::meter("journeyman")
        .u64_counter("journeyman.deliveries")
        .build()
});
static REFUSED: LazyLock<Counter<u64>> = LazyLock::new(|| {
    global::meter("journeyman")
        .u64_counter("journeyman.deliveries.refused")
        .build()
});

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JiraName {
    webhook_event: String,
}

impl WebhookHandlers {
    /// Creates the state.
    ///
    /// # Errors
    /// When the setting of the networks is invalid.
    pub(crate) fn new(settings: &Settings, queue: Arc<OnceLock<Queue>>) -> Result<Self, Error> {
        let named = &settings.webhook_secrets;
        Ok(Self {
            inner: Arc::new(WebhookState {
                networks: settings.networks()?,
                github: SenderKeys::new(WebhookKeys::new, &settings.github_webhook_secrets, &named.github),
                jira: SenderKeys::new(WebhookKeys::new, &settings.jira_webhook_secrets, &named.jira),
                automation: SenderKeys::new(
                    AutomationKeys::new,
                    &settings.jira_automation_secrets,
                    &named.automation,
                ),
                queue,
                bodies: RequestBodies::new(settings.body_memory_mib << 20, settings.max_body_bytes),
                publish_timeout: Duration::from_millis(settings.publish_timeout_ms),
                refusals: ThrottledLog::new(LOG_PAUSE),
                away_since: Mutex::default(),
            }),
        })
    }

    pub(crate) fn router(&self) -> Router {
        Router::new()
            .route("/webhooks/github", post(handle_github_webhook))
            .route("/webhooks/github/{instance}", post(handle_github_webhook))
            .route("/webhooks/jira", post(handle_jira_webhook))
            .route("/webhooks/jira/{instance}", post(handle_jira_webhook))
            .route("/webhooks/automation", post(handle_automation_request))
            .route("/webhooks/automation/{instance}", post(handle_automation_request))
            .with_state(self.clone())
    }

    async fn accept(
        &self,
        sender: &SenderHeaders,
        keys: &SenderKeys<WebhookKeys>,
        instance: InstancePath,
        request: Request,
    ) -> StatusCode {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map(|peer| peer.0.ip());
        // Answer as for a missing signature, so an unknown address learns nothing.
        if !self.inner.networks.admit(peer) {
            return self.refuse(sender, peer, WebhookRefusal(StatusCode::UNAUTHORIZED, "address"));
        }
        let Some((instance, keys)) = keys.of(name_instance(&instance)) else {
            return self.refuse(sender, peer, WebhookRefusal(StatusCode::NOT_FOUND, "instance"));
        };
        match self.take(sender, instance, keys, request).await {
            Ok(()) => StatusCode::ACCEPTED,
            Err(refused) => self.refuse(sender, peer, refused),
        }
    }

    fn refuse(
        &self,
        sender: &SenderHeaders,
        peer: Option<IpAddr>,
        WebhookRefusal(status, reason): WebhookRefusal,
    ) -> StatusCode {
        let source = (sender.source)(None).service();
        let labels = [
            KeyValue::new("journeyman.source", source),
            KeyValue::new("journeyman.reason", reason),
        ];
        REFUSED.add(1, &labels);
        // Limits the log, because any peer can send unsigned webhooks at any rate.
        if let Some(others) = self.inner.refusals.pass() {
            let peer = peer.map(tracing::field::display);
            tracing::warn!(
                source,
                peer,
                reason,
                status = status.as_u16(),
                others,
                "webhook refused"
            );
        }
        status
    }

    /// Checks the headers before the body, so that an unauthenticated peer cannot make the service read a body.
    async fn take(
        &self,
        sender: &SenderHeaders,
        instance: Option<&InstanceName>,
        keys: &WebhookKeys,
        request: Request,
    ) -> Result<(), WebhookRefusal> {
        let (head, body) = request.into_parts();
        let unauthorized = |_| WebhookRefusal(StatusCode::UNAUTHORIZED, "signature");
        let claimed = ClaimedSignature::read(&head.headers, sender.signature).map_err(unauthorized)?;
        // The queue is checked before the body, so that an outage costs no memory for bodies.
        let queue = self.connected().await?;
        let body = self.inner.bodies.read(&head.headers, body).await;
        let body = body.map_err(|error| WebhookRefusal(error.status(), "body"))?;
        let verified = keys.verify(&claimed, body).map_err(unauthorized)?;
        let named = DeliveryHeaders::read(sender, &head.headers)?;
        let unfit = |InvalidBody(reason)| WebhookRefusal(StatusCode::BAD_REQUEST, reason);
        // The body is validated only after its signature, so that parsing costs are limited to authenticated senders.
        let body = WebhookBody::parse(verified.body()).map_err(unfit)?;
        body.must_be(named.event.as_deref().unwrap_or_default())
            .map_err(unfit)?;
        let delivery = named.delivery(sender, instance, &verified);
        self.publish(queue, &delivery).await
    }

    async fn accept_automation(&self, instance: InstancePath, request: Request) -> StatusCode {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map(|peer| peer.0.ip());
        if !self.inner.networks.admit(peer) {
            return self.refuse(&JIRA, peer, WebhookRefusal(StatusCode::UNAUTHORIZED, "address"));
        }
        // A name without secrets gets the answer of a wrong secret, because there is none that could be right.
        let Some((instance, keys)) = self.inner.automation.of(name_instance(&instance)) else {
            return self.refuse(&JIRA, peer, WebhookRefusal(StatusCode::UNAUTHORIZED, "token"));
        };
        match self.take_automation(instance, keys, request).await {
            Ok(()) => StatusCode::ACCEPTED,
            Err(refused) => self.refuse(&JIRA, peer, refused),
        }
    }

    /// Checks the secret before the body, like the signature's header of a webhook.
    async fn take_automation(
        &self,
        instance: Option<&InstanceName>,
        keys: &AutomationKeys,
        request: Request,
    ) -> Result<(), WebhookRefusal> {
        let (head, body) = request.into_parts();
        keys.admit(&head.headers, Instant::now())
            .map_err(|refused| match refused {
                AutomationRefusal::Token => WebhookRefusal(StatusCode::UNAUTHORIZED, "token"),
                AutomationRefusal::Rate => WebhookRefusal(StatusCode::TOO_MANY_REQUESTS, "rate"),
            })?;
        let queue = self.connected().await?;
        let body = self.inner.bodies.read(&head.headers, body).await;
        let body = body.map_err(|error| WebhookRefusal(error.status(), "body"))?;
        let unfit = |reason| WebhookRefusal(StatusCode::BAD_REQUEST, reason);
        let ticket = read_named_ticket(instance, &body).map_err(unfit)?;
        let delivery = WebhookDelivery {
            source: ServiceOrigin::Jira(instance.cloned()),
            // Each request asks for a read of the ticket as it is now, so none repeats another one.
            id: format!("automation:{}", uuid::Uuid::new_v4()),
            event: TICKET_READ_EVENT.to_owned(),
            received_at: bootstrap::read_wall_clock(),
            body: build_ticket_read_body(&ticket),
        };
        self.publish(queue, &delivery).await
    }

    /// Queue, once it is connected.
    ///
    /// A client whose NATS server stops reconnects to another one within milliseconds, and GitHub does not repeat a refused
    /// webhook. So a webhook waits for the new connection. After [`RECONNECTION`] without one, webhooks are refused at once,
    /// because senders wait only seconds for an answer.
    async fn connected(&self) -> Result<&Queue, WebhookRefusal> {
        loop {
            let queue = self.inner.queue.get().filter(|queue| queue.is_connected());
            let away = self.inner.note_connection(queue.is_some());
            match queue {
                Some(queue) => return Ok(queue),
                None if away >= RECONNECTION => {
                    return Err(WebhookRefusal(StatusCode::SERVICE_UNAVAILABLE, "nats is away"));
                }
                None => sleep(RECONNECTION_PAUSE).await,
            }
        }
    }

    async fn publish(&self, queue: &Queue, delivery: &WebhookDelivery) -> Result<(), WebhookRefusal> {
        let unavailable = |reason| WebhookRefusal(StatusCode::SERVICE_UNAVAILABLE, reason);
        let (id, source, event) = (&delivery.id, &delivery.source, &delivery.event);
        // GitHub and Jira wait ten seconds for an answer. The wait for NATS ends earlier, so that the
        // sender gets a 503 instead of a timeout.
        match timeout(self.inner.publish_timeout, queue.deliveries().publish(delivery)).await {
            // A repeated delivery is not new. It is stored already, so the sender gets the same answer.
            Ok(Ok(new)) => {
                let labels = [
                    KeyValue::new("journeyman.source", source.service()),
                    KeyValue::new("journeyman.new", new),
                ];
                ACCEPTED.add(1, &labels);
                let bytes = delivery.body.len();
                tracing::info!(delivery = id, %source, event, new, bytes, "delivery stored");
                Ok(())
            }
            Ok(Err(error)) => {
                tracing::warn!(delivery = id, %source, error = %format_error_chain(&error), "delivery not stored");
                Err(unavailable(match error {
                    queue::Error::Full { .. } => "nats is full",
                    queue::Error::Unavailable { .. }
                    | queue::Error::Conflict
                    | queue::Error::Corrupt { .. }
                    | queue::Error::Newer { .. }
                    | queue::Error::Topology { .. } => "not stored",
                }))
            }
            Err(_) => {
                tracing::warn!(
                    delivery = id,
                    %source,
                    "delivery not stored: nats did not acknowledge in time"
                );
                Err(unavailable("not acknowledged"))
            }
        }
    }
}

/// Id and event of a delivery from its headers.
struct DeliveryHeaders {
    id: Option<String>,
    event: Option<String>,
}

impl DeliveryHeaders {
    /// Reads the headers. Refuses a delivery without a header that its sender always sends.
    fn read(sender: &SenderHeaders, headers: &HeaderMap) -> Result<Self, WebhookRefusal> {
        let header = |name: &str| {
            let value = headers.get(name).and_then(|value| value.to_str().ok());
            value.filter(|value| !value.is_empty() && value.len() <= ID_CHARS)
        };
        let missing = WebhookRefusal(StatusCode::BAD_REQUEST, "headers");
        let (id, event) = (header(sender.id), sender.event.and_then(header));
        // Only GitHub always sends both. A Jira delivery without an id gets the hash of its body.
        if sender.event.is_some() && (id.is_none() || event.is_none()) {
            return Err(missing);
        }
        Ok(Self {
            id: id.map(str::to_owned),
            event: event.map(str::to_owned),
        })
    }

    fn delivery(
        self,
        sender: &SenderHeaders,
        instance: Option<&InstanceName>,
        verified: &VerifiedBody,
    ) -> WebhookDelivery {
        let body = verified.body().clone();
        let event = self.event.unwrap_or_else(|| {
            let name = serde_json::from_slice::<JiraName>(&json::replace_broken_characters(&body));
            name.map(|name| name.webhook_event).unwrap_or_default()
        });
        let event = event.chars().filter(char::is_ascii_graphic);
        WebhookDelivery {
            source: (sender.source)(instance.cloned()),
            // The id is the message id of the queue. A repeated delivery has the same body, so its hash
            // detects the repetition.
            id: self.id.unwrap_or_else(|| hex::hash_sha256(&body)),
            event: event.take(EVENT_CHARS).collect(),
            received_at: bootstrap::read_wall_clock(),
            body,
        }
    }
}

/// Path segment with the name of an instance; absent for the default one.
type InstancePath = Option<Path<String>>;

fn name_instance(path: &InstancePath) -> Option<&str> {
    path.as_ref().map(|Path(name)| name.as_str())
}

async fn handle_github_webhook(
    State(webhooks): State<WebhookHandlers>,
    instance: InstancePath,
    request: Request,
) -> StatusCode {
    webhooks
        .accept(&GITHUB, &webhooks.inner.github, instance, request)
        .await
}

async fn handle_jira_webhook(
    State(webhooks): State<WebhookHandlers>,
    instance: InstancePath,
    request: Request,
) -> StatusCode {
    webhooks
        .accept(&JIRA, &webhooks.inner.jira, instance, request)
        .await
}

async fn handle_automation_request(
    State(webhooks): State<WebhookHandlers>,
    instance: InstancePath,
    request: Request,
) -> StatusCode {
    webhooks.accept_automation(instance, request).await
}

#[cfg(test)]
mod fuzz;

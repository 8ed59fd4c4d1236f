//! Signed webhooks: sent in order in the background, recorded, and repeated on demand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use crate::chaos::DeliveryFaults;
use crate::exchanges;
use crate::http::iso_now;

// The vendors wait for ten seconds, in which a loaded machine may stand still. GitHub sends a lost webhook once.
const TIMEOUT: Duration = Duration::from_secs(60);
const DRAIN: Duration = Duration::from_secs(5);
const JIRA_TRIES: u32 = 5;
const JIRA_PAUSE: Duration = Duration::from_millis(300);

/// Vendor whose headers, signature and retries are imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WebhookStyle {
    /// Signature in `X-Hub-Signature-256`; one attempt.
    GitHub,
    /// Signature in `X-Hub-Signature`; several attempts.
    Jira,
    /// No delivery id, and no signature before release 10; one attempt.
    JiraDataCenter { signs: bool },
}

impl WebhookStyle {
    /// Service name under which webhooks are recorded.
    fn service(self) -> Option<&'static str> {
        match self {
            Self::GitHub => Some("github"),
            Self::Jira => Some("jira"),
            Self::JiraDataCenter { .. } => None,
        }
    }
}

/// Webhook that is queued or sent.
#[derive(Debug, Clone)]
pub(crate) struct SentDelivery {
    pub(crate) id: u64,
    pub(crate) guid: String,
    pub(crate) event: String,
    pub(crate) payload: Value,
    pub(crate) delivered_at: String,
    pub(crate) redelivery: bool,
    /// HTTP status of the receiver; 0 before an answer, or without one.
    pub(crate) status: u16,
}

#[derive(Clone)]
struct WebhookTarget {
    url: String,
    secret: String,
}

/// Random faults of deliveries and their counts.
#[derive(Default)]
struct DeliveryTrouble {
    faults: Option<DeliveryFaults>,
    met: BTreeMap<String, usize>,
}

impl DeliveryTrouble {
    /// Returns the delays of a delivery, one for each copy; `None` without random faults.
    fn delays(&mut self, delivery: &SentDelivery) -> Option<Vec<Duration>> {
        let delays = self.faults.as_ref()?.delays(delivery.id);
        if delays.len() > 1 {
            *self.met.entry("delivery repeated".to_owned()).or_default() += 1;
        }
        if delays.iter().any(|delay| !delay.is_zero()) {
            *self.met.entry("delivery late".to_owned()).or_default() += 1;
        }
        Some(delays)
    }
}

/// Sender of webhooks. Dropping it stops the background task.
pub(crate) struct SentWebhooks {
    trouble: Arc<Mutex<DeliveryTrouble>>,
    target: Mutex<Option<WebhookTarget>>,
    deliveries: Arc<Mutex<Vec<SentDelivery>>>,
    queue: Mutex<Option<mpsc::UnboundedSender<(SentDelivery, WebhookTarget)>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl SentWebhooks {
    pub(crate) fn start(style: WebhookStyle) -> anyhow::Result<Self> {
        // The call fails if another part of the process has already installed a provider, which serves as
        // well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // The receiver is on loopback, which a proxy of the environment cannot reach.
        let client = reqwest::Client::builder().timeout(TIMEOUT).no_proxy().build()?;
        let (queue, mut waiting) = mpsc::unbounded_channel::<(SentDelivery, WebhookTarget)>();
        let deliveries = Arc::new(Mutex::new(Vec::<SentDelivery>::new()));
        let sender = DeliverySender {
            client,
            style,
            known: Arc::clone(&deliveries),
        };
        let trouble = Arc::new(Mutex::new(DeliveryTrouble::default()));
        let met = Arc::clone(&trouble);
        let task = tokio::spawn(async move {
            // Deliveries with faults are sent concurrently, so that others can overtake late ones.
            let mut apart = JoinSet::new();
            while let Some((delivery, target)) = waiting.recv().await {
                let delays = met.lock().delays(&delivery);
                match delays {
                    // Without faults, deliveries stay in order: each one ends before the next begins.
                    None => sender.clone().deliver(delivery, target, Duration::ZERO).await,
                    Some(delays) => {
                        for delay in delays {
                            apart.spawn(sender.clone().deliver(delivery.clone(), target.clone(), delay));
                        }
                    }
                }
                while apart.try_join_next().is_some() {}
            }
            apart.join_all().await;
        });
        Ok(Self {
            trouble,
            target: Mutex::new(None),
            deliveries,
            queue: Mutex::new(Some(queue)),
            task: Mutex::new(Some(task)),
        })
    }

    pub(crate) fn set_target(&self, url: &str, secret: &str) {
        *self.target.lock() = Some(WebhookTarget {
            url: url.to_owned(),
            secret: secret.to_owned(),
        });
    }

    /// Sets the random faults of later deliveries.
    pub(crate) fn set_faults(&self, faults: Option<DeliveryFaults>) {
        self.trouble.lock().faults = faults;
    }

    /// Number of late and of repeated deliveries.
    pub(crate) fn faults_met(&self) -> BTreeMap<String, usize> {
        self.trouble.lock().met.clone()
    }

    /// Sends an event if a target is set.
    pub(crate) fn send(&self, event: &str, payload: Value) {
        self.enqueue(event, payload, uuid::Uuid::new_v4().to_string(), false);
    }

    /// Sends a recorded delivery again with its guid. It returns false for an unknown id.
    pub(crate) fn redeliver(&self, id: u64) -> bool {
        let found = self.deliveries().into_iter().find(|delivery| delivery.id == id);
        found.is_some_and(|delivery| {
            self.enqueue(&delivery.event, delivery.payload, delivery.guid, true);
            true
        })
    }

    pub(crate) fn redeliver_all(&self) {
        // Redeliveries are left out; otherwise each call would double their number.
        for delivery in self
            .deliveries()
            .into_iter()
            .filter(|delivery| !delivery.redelivery)
        {
            self.enqueue(&delivery.event, delivery.payload, delivery.guid, true);
        }
    }

    pub(crate) fn deliveries(&self) -> Vec<SentDelivery> {
        self.deliveries.lock().clone()
    }

    fn enqueue(&self, event: &str, payload: Value, guid: String, redelivery: bool) {
        // Without a target the event is lost, as on a site without webhooks.
        let Some(target) = self.target.lock().clone() else {
            return;
        };
        let mut deliveries = self.deliveries.lock();
        let delivery = SentDelivery {
            id: deliveries.len() as u64 + 1,
            guid,
            event: event.to_owned(),
            payload,
            delivered_at: iso_now(),
            redelivery,
            status: 0,
        };
        deliveries.push(delivery.clone());
        // The queue is absent and its receiver closed only after `stop`, when webhooks no longer matter.
        if let Some(queue) = self.queue.lock().as_ref() {
            let _ = queue.send((delivery, target));
        }
    }

    /// Sends the queued webhooks within a few seconds and stops the task.
    pub(crate) async fn stop(&self) {
        drop(self.queue.lock().take());
        let task = self.task.lock().take();
        if let Some(mut task) = task
            && tokio::time::timeout(DRAIN, &mut task).await.is_err()
        {
            task.abort();
        }
    }
}

impl Drop for SentWebhooks {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }
}

/// Sends deliveries and records their status.
#[derive(Clone)]
struct DeliverySender {
    client: reqwest::Client,
    style: WebhookStyle,
    known: Arc<Mutex<Vec<SentDelivery>>>,
}

impl DeliverySender {
    async fn deliver(self, delivery: SentDelivery, target: WebhookTarget, delay: Duration) {
        tokio::time::sleep(delay).await;
        let status = send_with_retries(&self.client, self.style, &delivery, &target).await;
        let mut known = self.known.lock();
        let entry = known.iter_mut().find(|entry| entry.id == delivery.id);
        // A delivery with several copies has succeeded if one of them has.
        if let Some(entry) = entry.filter(|entry| !(200..300).contains(&entry.status)) {
            entry.status = status;
        }
    }
}

async fn send_with_retries(
    client: &reqwest::Client,
    style: WebhookStyle,
    delivery: &SentDelivery,
    target: &WebhookTarget,
) -> u16 {
    if let Some(service) = style.service() {
        exchanges::note_webhook(service, &delivery.event, &delivery.payload);
    }
    let tries = match style {
        WebhookStyle::GitHub | WebhookStyle::JiraDataCenter { .. } => 1,
        WebhookStyle::Jira => JIRA_TRIES,
    };
    let mut status = 0;
    for attempt in 0..tries {
        if attempt > 0 {
            tokio::time::sleep(JIRA_PAUSE).await;
        }
        status = send_once(client, style, delivery, target).await;
        // Jira retries after server errors and missing answers, never after a client error.
        if (1..500).contains(&status) {
            break;
        }
    }
    tracing::debug!(event = delivery.event, status, "webhook sent");
    status
}

async fn send_once(
    client: &reqwest::Client,
    style: WebhookStyle,
    delivery: &SentDelivery,
    target: &WebhookTarget,
) -> u16 {
    // The signature covers exactly these bytes, so the body is rendered once.
    let body = delivery.payload.to_string();
    let signature = format!("sha256={}", sign_body(&target.secret, body.as_bytes()));
    let request = client
        .post(&target.url)
        .header("content-type", "application/json");
    let request = match style {
        WebhookStyle::GitHub => request
            .header("user-agent", "GitHub-Hookshot/0000000")
            .header("x-github-event", &delivery.event)
            .header("x-github-delivery", &delivery.guid)
            .header("x-github-hook-id", "1")
            .header("x-hub-signature-256", signature),
        WebhookStyle::Jira => request
            .header("user-agent", "Atlassian Webhook HTTP Client")
            .header("x-atlassian-webhook-identifier", &delivery.guid)
            .header("x-hub-signature", signature),
        WebhookStyle::JiraDataCenter { signs } => {
            let request = request.header("user-agent", "Atlassian HttpClient");
            if signs && !target.secret.is_empty() {
                request.header("x-hub-signature", signature)
            } else {
                request
            }
        }
    };
    request
        .body(body)
        .send()
        .await
        .map_or(0, |response| response.status().as_u16())
}

/// Returns the HMAC-SHA256 of a body in hexadecimal.
pub(crate) fn sign_body(secret: &str, body: &[u8]) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
    HEXLOWER.encode(ring::hmac::sign(&key, body).as_ref())
}

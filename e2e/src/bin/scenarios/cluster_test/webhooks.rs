//! Signed webhooks: a steady load from the pod of the stand-ins, and the stand-ins' own webhooks on their
//! path to ingest.

use std::{collections::HashSet, sync::Arc, time::Duration};

use anyhow::Context;
use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use e2e::SignedWebhookSender;
use parking_lot::Mutex;
use serde_json::json;
use testkit::fixture;
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use crate::cluster_test::names::{WebhookCount, WebhookLoad};

/// GitHub's time limit for an answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Headers that the relay forwards: those that ingest reads.
const HEADERS: [&str; 6] = [
    "content-type",
    "x-github-event",
    "x-github-delivery",
    "x-hub-signature-256",
    "x-hub-signature",
    "x-atlassian-webhook-identifier",
];

/// Builds a client with a new connection for every webhook, as GitHub and Jira have it.
fn new_client() -> anyhow::Result<reqwest::Client> {
    let builder = reqwest::Client::builder().no_proxy().timeout(ANSWER);
    builder
        .pool_max_idle_per_host(0)
        .build()
        .context("the client of webhooks")
}

/// Webhooks at a steady rate from the start of a round to its end.
pub(crate) struct SteadyWebhooks {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    count: Arc<Mutex<WebhookCount>>,
    earliest_end: Instant,
}

impl SteadyWebhooks {
    /// Starts the webhooks.
    ///
    /// # Errors
    /// When the client cannot be built.
    pub(crate) fn start(url: &str, load: WebhookLoad) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let count = Arc::new(Mutex::new(WebhookCount::default()));
        let sender = SteadySender {
            sender: SignedWebhookSender::new(new_client()?, format!("{url}/webhooks/github")),
            count: Arc::clone(&count),
            start: Instant::now(),
        };
        let task = tokio::spawn(sender.send_all(load, stop.clone()));
        Ok(Self {
            stop,
            task,
            count,
            earliest_end: Instant::now() + Duration::from_secs(load.least_s),
        })
    }

    /// Continues until the shortest duration is over, waits for all answers and returns their count.
    pub(crate) async fn finish(self) -> WebhookCount {
        tokio::time::sleep_until(self.earliest_end).await;
        self.stop.cancel();
        let _ = self.task.await;
        self.count.lock().clone()
    }
}

#[derive(Clone)]
struct SteadySender {
    sender: SignedWebhookSender,
    count: Arc<Mutex<WebhookCount>>,
    start: Instant,
}

impl SteadySender {
    async fn send_all(self, load: WebhookLoad, stop: CancellationToken) {
        // The ids are unique across rounds, because ingest stores a known delivery id only once.
        let series = bootstrap::read_wall_clock().unix_ms();
        let mut ticks = interval(Duration::from_secs(1) / load.per_second.max(1));
        // Missed ticks are made up, so that the rate stays constant.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut sent = JoinSet::new();
        for number in 0_u64.. {
            tokio::select! {
                _ = ticks.tick() => {}
                () = stop.cancelled() => break,
            }
            sent.spawn(self.clone().send(format!("steady-{series}-{number}")));
            while sent.try_join_next().is_some() {}
        }
        sent.join_all().await;
    }

    /// Sends a webhook that causes no work.
    async fn send(self, id: String) {
        let body = json!({"action": "created", "id": id, "repository": {"full_name": fixture::REPOSITORY}});
        let start = Instant::now();
        let answer = self.sender.send("star", &id, body.to_string()).await;
        let status = answer.ok().map(|status| status.as_u16());
        self.count.lock().add(status, start - self.start, start.elapsed());
    }
}

/// Relay of the stand-ins' webhooks to ingest. It counts each accepted delivery once.
#[derive(Clone)]
pub(crate) struct WebhookRelay {
    client: reqwest::Client,
    url: String,
    accepted: Arc<Mutex<HashSet<String>>>,
}

impl WebhookRelay {
    /// Listens on a loopback port and returns the URL for the stand-ins.
    ///
    /// # Errors
    /// When no port can be bound, or the client cannot be built.
    pub(crate) async fn serve(url: &str) -> anyhow::Result<(Self, String)> {
        let relay = Self {
            client: new_client()?,
            url: url.to_owned(),
            accepted: Arc::default(),
        };
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
        let own = format!("http://{}", listener.local_addr()?);
        let router = Router::new()
            .route("/webhooks/{source}", post(pass_webhook))
            .with_state(relay.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok((relay, own))
    }

    /// Number of accepted webhooks so far.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted.lock().len() as u64
    }
}

async fn pass_webhook(
    State(relay): State<WebhookRelay>,
    Path(source): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut request = relay.client.post(format!("{}/webhooks/{source}", relay.url));
    for name in HEADERS {
        if let Some(value) = headers.get(name) {
            request = request.header(name, value.as_bytes());
        }
    }
    let Ok(answer) = request.body(body).send().await else {
        return StatusCode::GATEWAY_TIMEOUT.into_response();
    };
    let status = answer.status().as_u16();
    let id = ["x-github-delivery", "x-atlassian-webhook-identifier"];
    let id = id.iter().find_map(|name| headers.get(*name)?.to_str().ok());
    if let Some(id) = id.filter(|_| status == 202) {
        relay.accepted.lock().insert(format!("{source} {id}"));
    }
    StatusCode::from_u16(status)
        .unwrap_or(StatusCode::BAD_GATEWAY)
        .into_response()
}

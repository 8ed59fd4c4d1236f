//! How many webhooks ingest accepts, verified and published.

use anyhow::ensure;
use bootstrap::now;
use e2e::{WEBHOOK_SECRET, World};
use queue::WebhookDelivery;
use ring::hmac;
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

use crate::measure::{Samples, figure};

const CLIENTS: usize = 64;
const EACH: usize = 80;
const SEQUENTIAL: usize = 500;
/// About the size of GitHub's own examples.
const BODY_BYTES: usize = 25_000;

#[derive(Clone)]
struct Sender {
    client: reqwest::Client,
    url: String,
    key: hmac::Key,
}

impl Sender {
    /// Sends one delivery that no job follows from.
    async fn send(&self, id: String) -> anyhow::Result<()> {
        let body = body(&id);
        let tag = hmac::sign(&self.key, body.as_bytes());
        let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let request = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .header("x-github-event", "star")
            .header("x-github-delivery", id)
            .header("x-hub-signature-256", format!("sha256={hex}"))
            .body(body);
        let status = request.send().await?.status();
        ensure!(status == 202, "a webhook was answered with {status}");
        Ok(())
    }
}

fn body(id: &str) -> String {
    let padding = "a line of what GitHub says about a repository; ".repeat(BODY_BYTES / 47);
    json!({"action": "created", "id": id, "repository": {"full_name": "acme/shop", "description": padding}})
        .to_string()
}

/// Prints the rate with 64 clients, the time of one at a time, and of the bare publish underneath.
pub(crate) async fn rate(world: &World) -> anyhow::Result<()> {
    let sender = Sender {
        client: reqwest::Client::builder().no_proxy().build()?,
        url: format!("{}/webhooks/github", world.url),
        key: hmac::Key::new(hmac::HMAC_SHA256, WEBHOOK_SECRET.as_bytes()),
    };
    let start = Instant::now();
    let samples = at_once(&sender).await?;
    let seconds = start.elapsed().as_secs_f64();
    figure(
        "webhook_ingest_c64",
        (CLIENTS * EACH) as f64 / seconds,
        "per_second",
    );
    samples.print("webhook_ingest_c64");
    Samples::sequential(SEQUENTIAL, |number| sender.send(format!("one-{number}")))
        .await?
        .print("webhook_ingest_c1");
    floor(world).await
}

async fn at_once(sender: &Sender) -> anyhow::Result<Samples> {
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let sender = sender.clone();
        clients.spawn(async move {
            Samples::sequential(EACH, |number| sender.send(format!("many-{client}-{number}"))).await
        });
    }
    let mut all = Samples::default();
    while let Some(samples) = clients.join_next().await {
        all.join(samples??);
    }
    Ok(all)
}

async fn floor(world: &World) -> anyhow::Result<()> {
    let deliveries = world.queue().await?.deliveries();
    let samples = Samples::sequential(SEQUENTIAL, async |number| {
        let id = format!("floor-{number}");
        let delivery = WebhookDelivery {
            source: "github".to_owned(),
            event: "star".to_owned(),
            received_at: now(),
            body: body(&id).into(),
            id,
        };
        Ok(deliveries.publish(&delivery).await.map(drop)?)
    });
    samples.await?.print("floor_publish_and_ack_25kB");
    Ok(())
}

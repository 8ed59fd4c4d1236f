//! Rate at which ingest verifies and publishes webhooks.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use bootstrap::read_wall_clock;
use e2e::{SignedWebhookSender, TestWorld};
use queue::WebhookDelivery;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Semaphore,
    task::JoinSet,
    time::Instant,
};

use crate::bench::measure::{DurationSamples, convert_to_milliseconds, print_figure};

const CLIENTS: usize = 64;
const EACH: usize = 80;
const SEQUENTIAL: usize = 500;
/// Number of connections that never complete a request.
const IDLE: u32 = 1_000;
/// Approximate size of GitHub's documented examples.
const BODY_BYTES: usize = 25_000;

/// Sends a delivery that causes no job.
async fn send_star(sender: &SignedWebhookSender, id: String) -> anyhow::Result<()> {
    let status = sender.send("star", &id, render_star_body(&id)).await?;
    ensure!(status == 202, "a webhook was answered with {status}");
    Ok(())
}

fn render_star_body(id: &str) -> String {
    let padding = "a line of what GitHub says about a repository; ".repeat(BODY_BYTES / 47);
    json!({"action": "created", "id": id, "repository": {"full_name": "acme/shop", "description": padding}})
        .to_string()
}

/// Prints the rate with 64 clients, the time of single webhooks, and the floor of a bare publish.
pub(crate) async fn measure_webhooks(world: &TestWorld) -> anyhow::Result<()> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let sender = SignedWebhookSender::new(client, format!("{}/webhooks/github", world.url));
    let start = Instant::now();
    let samples = at_once(&sender).await?;
    let seconds = start.elapsed().as_secs_f64();
    print_figure(
        "webhook_ingest_c64",
        (CLIENTS * EACH) as f64 / seconds,
        "per_second",
    );
    samples.print("webhook_ingest_c64");
    DurationSamples::sequential(SEQUENTIAL, |number| send_star(&sender, format!("one-{number}")))
        .await?
        .print("webhook_ingest_c1");
    beside_idle(&sender).await?;
    measure_publish_floor(world).await
}

/// Prints the latency of signed webhooks over new connections, without and with 1,000 idle connections.
async fn beside_idle(sender: &SignedWebhookSender) -> anyhow::Result<()> {
    // Each webhook opens a connection, as GitHub does.
    let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0);
    let fresh = sender.with_client(client.build()?);
    let alone =
        DurationSamples::sequential(SEQUENTIAL, |number| send_star(&fresh, format!("alone-{number}")))
            .await?;
    print_figure(
        "floor_webhook_p99_alone",
        convert_to_milliseconds(alone.quantile(99)),
        "ms",
    );
    let address = sender.url().trim_start_matches("http://").split('/').next();
    let address = address.context("an address")?.to_owned();
    // Dropping the set at the end closes the connections.
    let mut idle = JoinSet::new();
    let open = Arc::new(Semaphore::new(0));
    for _ in 0..IDLE {
        idle.spawn(stay_idle(address.clone(), Arc::clone(&open)));
    }
    // Each idle connection has been open at least once.
    drop(open.acquire_many(IDLE).await?);
    let beside =
        DurationSamples::sequential(SEQUENTIAL, |number| send_star(&fresh, format!("beside-{number}")))
            .await?;
    print_figure(
        "webhook_p99_beside_1000_idle",
        convert_to_milliseconds(beside.quantile(99)),
        "ms",
    );
    Ok(())
}

/// Holds a connection that sends half a request head. It reconnects about a second after the service closes it:
/// at random, because all of them at one moment would displace the connection of a webhook before its request
/// arrives.
async fn stay_idle(address: String, open: Arc<Semaphore>) {
    let mut first = true;
    loop {
        if let Ok(mut stream) = TcpStream::connect(&address).await {
            let _ = stream.write_all(b"POST /webhooks/github HTTP/1.1\r\nhost").await;
            if std::mem::take(&mut first) {
                open.add_permits(1);
            }
            let _ = stream.read(&mut [0; 64]).await;
        }
        tokio::time::sleep(Duration::from_millis(fastrand::u64(500..1_500))).await;
    }
}

async fn at_once(sender: &SignedWebhookSender) -> anyhow::Result<DurationSamples> {
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let sender = sender.clone();
        clients.spawn(async move {
            DurationSamples::sequential(EACH, |number| {
                send_star(&sender, format!("many-{client}-{number}"))
            })
            .await
        });
    }
    let mut all = DurationSamples::default();
    while let Some(samples) = clients.join_next().await {
        all.join(samples??);
    }
    Ok(all)
}

/// Prints what publishing and its acknowledgement alone reach: one at a time, and with as many publishers as
/// there are clients.
async fn measure_publish_floor(world: &TestWorld) -> anyhow::Result<()> {
    let deliveries = world.queue().await?.deliveries();
    let samples = DurationSamples::sequential(SEQUENTIAL, async |number| {
        let delivery = build_star_delivery(format!("floor-{number}"));
        Ok(deliveries.publish(&delivery).await.map(drop)?)
    });
    samples.await?.print("floor_publish_and_ack_25kB");
    let start = Instant::now();
    let mut publishers = JoinSet::new();
    for publisher in 0..CLIENTS {
        let deliveries = deliveries.clone();
        publishers.spawn(async move {
            for number in 0..EACH {
                let delivery = build_star_delivery(format!("floor-{publisher}-{number}"));
                deliveries.publish(&delivery).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(published) = publishers.join_next().await {
        published??;
    }
    print_figure(
        "floor_publish_and_ack_c64",
        (CLIENTS * EACH) as f64 / start.elapsed().as_secs_f64(),
        "per_second",
    );
    Ok(())
}

fn build_star_delivery(id: String) -> WebhookDelivery {
    WebhookDelivery {
        source: domain::ServiceOrigin::GitHub(None),
        event: "star".to_owned(),
        received_at: read_wall_clock(),
        body: render_star_body(&id).into(),
        id,
    }
}

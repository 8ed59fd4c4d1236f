//! Rate at which ingest verifies and publishes webhooks.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use bootstrap::now;
use e2e::{WebhookSender, World};
use queue::WebhookDelivery;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Semaphore,
    task::JoinSet,
    time::Instant,
};

use crate::bench::measure::{Samples, figure, ms};

const CLIENTS: usize = 64;
const EACH: usize = 80;
const SEQUENTIAL: usize = 500;
/// Number of connections that never complete a request.
const IDLE: u32 = 1_000;
/// Approximate size of GitHub's documented examples.
const BODY_BYTES: usize = 25_000;

/// Sends a delivery that causes no job.
async fn send_star(sender: &WebhookSender, id: String) -> anyhow::Result<()> {
    let status = sender.send("star", &id, body(&id)).await?;
    ensure!(status == 202, "a webhook was answered with {status}");
    Ok(())
}

fn body(id: &str) -> String {
    let padding = "a line of what GitHub says about a repository; ".repeat(BODY_BYTES / 47);
    json!({"action": "created", "id": id, "repository": {"full_name": "acme/shop", "description": padding}})
        .to_string()
}

/// Prints the rate with 64 clients, the time of single webhooks, and the floor of a bare publish.
pub(crate) async fn rate(world: &World) -> anyhow::Result<()> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let sender = WebhookSender::new(client, format!("{}/webhooks/github", world.url));
    let start = Instant::now();
    let samples = at_once(&sender).await?;
    let seconds = start.elapsed().as_secs_f64();
    figure(
        "webhook_ingest_c64",
        (CLIENTS * EACH) as f64 / seconds,
        "per_second",
    );
    samples.print("webhook_ingest_c64");
    Samples::sequential(SEQUENTIAL, |number| send_star(&sender, format!("one-{number}")))
        .await?
        .print("webhook_ingest_c1");
    beside_idle(&sender).await?;
    floor(world).await
}

/// Prints the latency of signed webhooks over new connections, without and with 1,000 idle connections.
async fn beside_idle(sender: &WebhookSender) -> anyhow::Result<()> {
    // Each webhook opens a connection, as GitHub does.
    let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0);
    let fresh = sender.with_client(client.build()?);
    let alone =
        Samples::sequential(SEQUENTIAL, |number| send_star(&fresh, format!("alone-{number}"))).await?;
    figure("floor_webhook_p99_alone", ms(alone.quantile(99)), "ms");
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
        Samples::sequential(SEQUENTIAL, |number| send_star(&fresh, format!("beside-{number}"))).await?;
    figure("webhook_p99_beside_1000_idle", ms(beside.quantile(99)), "ms");
    Ok(())
}

/// Holds a connection that sends half a request head. It reconnects a second after the service closes it.
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
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn at_once(sender: &WebhookSender) -> anyhow::Result<Samples> {
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let sender = sender.clone();
        clients.spawn(async move {
            Samples::sequential(EACH, |number| {
                send_star(&sender, format!("many-{client}-{number}"))
            })
            .await
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
            source: domain::Origin::GitHub(None),
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

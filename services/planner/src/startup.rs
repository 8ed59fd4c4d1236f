//! Connects to what the planner cannot work without, patiently for a minute.

use std::{fmt::Display, sync::Arc, time::Duration};

use grant::Signer;
use lease::Leases;
use queue::Queue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::driver::Driver;
use crate::executors::Executors;
use crate::model::ChatModel;
use crate::run::Retries;
use crate::slots::{SlotKeeper, Slots};
use crate::ticket::TicketDesk;

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(2);

/// A desk with its connections; `None` when the shutdown came first.
///
/// # Errors
/// When something stays unreachable, or a setting cannot be used.
pub(crate) async fn desk(
    config: &Config,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<(TicketDesk, Queue, Leases)>> {
    let signer = Signer::new(&config.planner.grant_key_id, &config.planner.grant_key)?;
    let model = ChatModel::new(&config.model)?;
    let connect = || async {
        let queue = Queue::connect(&config.nats, "planner").await?;
        queue.ensure_topology().await?;
        Ok::<_, queue::Error>(queue)
    };
    let fatal = |error: &queue::Error| matches!(error, queue::Error::Topology(_));
    let Some(queue) = patiently("nats", &config.nats.url, shutdown, connect, fatal).await? else {
        return Ok(None);
    };
    let leases = Leases::open(&config.redis)?;
    // Only to say at once in the log whether it answers: work goes on without it.
    drop(leases.ping().await);
    let executors = Executors::start(config.planner.clone(), signer, shutdown);
    tokio::spawn(SlotKeeper::new(queue.clone(), Arc::clone(&executors)).run(shutdown.clone()));
    let driver = Driver {
        slots: Slots::new(queue.clone(), Arc::clone(&executors)),
        retries: Retries {
            most: config.planner.max_retries,
            base_ms: config.planner.retry_base_ms,
            longest_ms: config.planner.retry_longest_ms,
        },
        queue: queue.clone(),
        model,
        executors,
    };
    let desk = TicketDesk::new(queue.clone(), leases.clone(), driver);
    Ok(Some((desk, queue, leases)))
}

/// Tries every two seconds for a minute.
async fn patiently<T, E, F, Fut>(
    what: &'static str,
    url: &str,
    shutdown: &CancellationToken,
    connect: F,
    is_fatal: impl Fn(&E) -> bool,
) -> anyhow::Result<Option<T>>
where
    E: Display,
    F: Fn() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let address = without_credentials(url);
    let start = Instant::now();
    loop {
        let tried = tokio::select! {
            tried = connect() => tried,
            () = shutdown.cancelled() => return Ok(None),
        };
        match tried {
            Ok(connected) => return Ok(Some(connected)),
            Err(error) if is_fatal(&error) || start.elapsed() > PATIENCE => {
                anyhow::bail!("{what} at {address}: {error}");
            }
            Err(error) => tracing::warn!(address, %error, "{what} is not reachable, trying again"),
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = shutdown.cancelled() => return Ok(None),
        }
    }
}

/// The address without user and password.
fn without_credentials(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (Some(_) | None, _) => url.to_owned(),
    }
}

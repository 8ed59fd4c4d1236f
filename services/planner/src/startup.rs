//! Connects to what the planner cannot work without, patiently for a minute.

use bootstrap::service;
use grant::Signer;
use lease::Leases;
use queue::Queue;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::driver::Driver;
use crate::executors::Executors;
use crate::model::ChatModel;
use crate::ticket::TicketDesk;

/// A desk with its connections; `None` when the shutdown came first.
///
/// # Errors
/// When something stays unreachable, or a setting cannot be used.
pub(crate) async fn desk(
    config: &Config,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<(TicketDesk, Queue)>> {
    let signer = Signer::new(&config.planner.grant_key_id, &config.planner.grant_key)?;
    let model = ChatModel::new(&config.model)?;
    let connect = || async {
        let queue = Queue::connect(&config.nats, "planner").await?;
        queue.check_topology(queue::Role::Planner).await?;
        Ok::<_, queue::Error>(queue)
    };
    let is_fatal = |error: &queue::Error| !matches!(error, queue::Error::Unavailable(_));
    let addresses = config.nats.addresses();
    let Some(queue) = service::connect("nats", &addresses, shutdown, is_fatal, connect).await? else {
        return Ok(None);
    };
    let (address, connect) = (config.redis.address(), || Leases::connect(&config.redis));
    let Some(leases) = service::connect("redis", &address, shutdown, |_| false, connect).await? else {
        return Ok(None);
    };
    let executors = Executors::new(config.planner.clone(), signer);
    let driver = Driver {
        retry_base_ms: config.planner.retry_base_ms,
        queue: queue.clone(),
        model,
        executors,
    };
    Ok(Some((TicketDesk::new(queue.clone(), leases, driver), queue)))
}

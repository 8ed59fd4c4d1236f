//! Whether the network keeps commands from what they must not reach: tried before an executor takes work, and again as
//! long as it does. A policy that nothing enforces is silent otherwise.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use domain::cause::chain;
use tokio_util::sync::CancellationToken;

use crate::{registry::Registry, sandbox::Sandbox, server::Readiness, unready::Isolation};

/// A look-up of one name.
const LOOK_UP_TIME: Duration = Duration::from_secs(5);
/// Until the next try, after one that went wrong and after one that went well.
const AGAIN_SOON: Duration = Duration::from_secs(3);
const AGAIN: Duration = Duration::from_secs(300);

/// Tries all addresses over and over, until `stop`; the executor is ready as long as none is reached.
pub(crate) async fn watch(
    registry: Arc<Registry>,
    forbidden: Vec<String>,
    readiness: Readiness,
    stop: CancellationToken,
) {
    loop {
        let isolation = isolation(&registry.sandbox, &forbidden).await;
        registry.set_isolation(isolation);
        readiness.set(isolation.holds()).await;
        let pause = if isolation.holds() { AGAIN } else { AGAIN_SOON };
        let waited = if forbidden.is_empty() {
            stop.cancelled().await;
            None
        } else {
            stop.run_until_cancelled(tokio::time::sleep(pause)).await
        };
        if waited.is_none() {
            return;
        }
    }
}

async fn isolation(sandbox: &Sandbox, forbidden: &[String]) -> Isolation {
    if forbidden.is_empty() {
        return Isolation::Holds;
    }
    match sandbox.reached(&addresses(forbidden).await).await {
        Ok(reached) if reached.is_empty() => Isolation::Holds,
        Ok(reached) => {
            tracing::error!(
                ?reached,
                "not ready: commands reach addresses that executor.forbidden_addresses names. Check that the network policies are \
                 there and that the cluster's network plugin enforces them; this is tried again every {} s",
                AGAIN_SOON.as_secs()
            );
            Isolation::Broken
        }
        Err(error) => {
            tracing::error!(
                error = %chain(&error),
                "not ready: whether commands reach forbidden addresses could not be tried"
            );
            Isolation::Unknown
        }
    }
}

/// What the names stand for. A name that does not resolve here does not resolve for commands either.
async fn addresses(names: &[String]) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    for name in names {
        match tokio::time::timeout(LOOK_UP_TIME, tokio::net::lookup_host(name)).await {
            Ok(Ok(addresses)) => found.extend(addresses),
            Ok(Err(error)) => {
                tracing::info!(name, error = %chain(&error), "a forbidden address does not resolve")
            }
            Err(_) => tracing::info!(name, "a forbidden address does not resolve in time"),
        }
    }
    found.sort();
    found.dedup();
    found
}

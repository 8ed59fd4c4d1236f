//! Tests whether the network isolates commands from forbidden addresses, before the executor accepts work and
//! periodically afterwards.
//!
//! Without the test, a network policy that no component enforces would go unnoticed.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use domain::cause::format_error_chain;
use tokio_util::sync::CancellationToken;

use super::{readiness::NetworkIsolation, registry::WorkspaceRegistry, server::ReadinessReporter};
use crate::sandbox::CommandSandbox;

/// Time limit for resolving one name.
const LOOK_UP_TIME: Duration = Duration::from_secs(5);
/// Pauses until the next test, after a failure and after a success.
const AGAIN_SOON: Duration = Duration::from_secs(3);
const AGAIN: Duration = Duration::from_secs(300);

/// Tests all addresses repeatedly until `stop`. The executor is ready while none of them is reachable.
pub(crate) async fn watch_isolation(
    registry: Arc<WorkspaceRegistry>,
    forbidden: Vec<String>,
    readiness: ReadinessReporter,
    stop: CancellationToken,
) {
    loop {
        let isolation = test_isolation(&registry.sandbox, &forbidden).await;
        registry.capacity.set_isolation(isolation);
        readiness.set(registry.capacity.is_ready()).await;
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

async fn test_isolation(sandbox: &CommandSandbox, forbidden: &[String]) -> NetworkIsolation {
    if forbidden.is_empty() {
        return NetworkIsolation::Holds;
    }
    let found = find_addresses(forbidden).await;
    match sandbox.reached(&found.addresses).await {
        // Without any address, "nothing reached" proves nothing.
        Ok(reached) if reached.is_empty() && found.is_unresolved() => {
            tracing::error!(
                names = ?forbidden,
                "not ready: none of the names in executor.forbidden_addresses resolves here, so whether the network keeps commands \
                 from them was not tried. Where executors have no name service, name addresses; this is tried again every {} s",
                AGAIN_SOON.as_secs()
            );
            NetworkIsolation::Unresolved
        }
        Ok(reached) if reached.is_empty() => NetworkIsolation::Holds,
        Ok(reached) => {
            tracing::error!(
                ?reached,
                "not ready: commands reach addresses that executor.forbidden_addresses names. Check that the network policies are \
                 there and that the cluster's network plugin enforces them; this is tried again every {} s",
                AGAIN_SOON.as_secs()
            );
            NetworkIsolation::Broken
        }
        Err(error) => {
            tracing::error!(
                error = %format_error_chain(&error),
                "not ready: whether commands reach forbidden addresses could not be tried"
            );
            NetworkIsolation::Unknown
        }
    }
}

/// Addresses to test, with the number of names that resolved.
#[derive(Default)]
struct ResolvedAddresses {
    addresses: Vec<SocketAddr>,
    /// Number of entries that are names.
    names: usize,
    resolved: usize,
}

impl ResolvedAddresses {
    /// Returns true when a test would prove nothing: no address exists, or none of several names resolved, as
    /// without a name service. A single name may be missing because its service is not installed.
    const fn is_unresolved(&self) -> bool {
        self.addresses.is_empty() || (self.names > 1 && self.resolved == 0)
    }
}

/// Resolves the names. In a pod without a name service, commands can reach by address what they cannot
/// resolve, so an unresolved name is no proof of isolation.
async fn find_addresses(entries: &[String]) -> ResolvedAddresses {
    let mut found = ResolvedAddresses::default();
    for entry in entries {
        if let Ok(address) = entry.parse::<SocketAddr>() {
            found.addresses.push(address);
            continue;
        }
        found.names += 1;
        match tokio::time::timeout(LOOK_UP_TIME, tokio::net::lookup_host(entry)).await {
            Ok(Ok(addresses)) => {
                let before = found.addresses.len();
                found.addresses.extend(addresses);
                found.resolved += usize::from(found.addresses.len() > before);
            }
            Ok(Err(error)) => {
                tracing::warn!(name = entry, error = %format_error_chain(&error), "a forbidden address does not resolve, so it is not tried")
            }
            Err(_) => tracing::warn!(
                name = entry,
                "a forbidden address does not resolve in time, so it is not tried"
            ),
        }
    }
    found.addresses.sort();
    found.addresses.dedup();
    found
}

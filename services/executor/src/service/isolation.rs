//! Tests whether the network isolates commands from forbidden addresses, before the executor accepts work and
//! periodically afterwards.
//!
//! Without the test, a network policy that no component enforces would go unnoticed.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use domain::cause::format_error_chain;
use tokio_util::sync::CancellationToken;

use super::{readiness::NetworkIsolation, registry::WorkspaceRegistry, server::ReadinessReporter};
use crate::sandbox::CommandSandbox;

/// Time limit for resolving one name.
const RESOLUTION_TIME: Duration = Duration::from_secs(5);
/// Pauses until the next test, after a failure and after a success.
const FAILURE_PAUSE: Duration = Duration::from_secs(3);
const SUCCESS_PAUSE: Duration = Duration::from_secs(300);

/// Tests all addresses repeatedly until `stop`. The executor is ready while none of them is reachable.
pub(crate) async fn watch_isolation(
    registry: Arc<WorkspaceRegistry>,
    forbidden: Vec<String>,
    readiness: ReadinessReporter,
    stop: CancellationToken,
) {
    let mut known = KnownAddresses::default();
    loop {
        let isolation = test_isolation(&registry.sandbox, &forbidden, &mut known).await;
        registry.capacity.set_isolation(isolation);
        readiness.set(registry.capacity.is_ready()).await;
        let pause = if isolation.holds() {
            SUCCESS_PAUSE
        } else {
            FAILURE_PAUSE
        };
        if stop
            .run_until_cancelled(tokio::time::sleep(pause))
            .await
            .is_none()
        {
            return;
        }
    }
}

async fn test_isolation(
    sandbox: &CommandSandbox,
    forbidden: &[String],
    known: &mut KnownAddresses,
) -> NetworkIsolation {
    if forbidden.is_empty() {
        return NetworkIsolation::Holds;
    }
    let found = resolve_addresses(forbidden, known).await;
    match sandbox.reached(&found.addresses).await {
        // Without any address, "nothing reached" proves nothing.
        Ok(reached) if reached.is_empty() && found.is_unresolved() => {
            tracing::error!(
                names = ?forbidden,
                "not ready: none of the names in executor.forbidden_addresses resolves here, so whether the network keeps commands \
                 from them was not tried. Where executors have no name service, name addresses; this is tried again every {} s",
                FAILURE_PAUSE.as_secs()
            );
            NetworkIsolation::Unresolved
        }
        Ok(reached) if reached.is_empty() => NetworkIsolation::Holds,
        Ok(reached) => {
            tracing::error!(
                ?reached,
                "not ready: commands reach addresses that executor.forbidden_addresses names. Check that the network policies are \
                 there and that the cluster's network plugin enforces them; this is tried again every {} s",
                FAILURE_PAUSE.as_secs()
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

/// Addresses of each name in the last answer that had any.
///
/// A name may stop resolving while its addresses answer, so they are tested until the process ends. A name that
/// never resolved is only reported: its service may not be installed.
#[derive(Default)]
struct KnownAddresses(BTreeMap<String, Vec<SocketAddr>>);

impl KnownAddresses {
    /// Records an answer and returns the addresses to test; empty for a name that never resolved.
    fn record(&mut self, name: &str, answer: Vec<SocketAddr>) -> &[SocketAddr] {
        let known = self.0.entry(name.to_owned()).or_default();
        if !answer.is_empty() {
            *known = answer;
        }
        known
    }
}

/// Resolves the names. In a pod without a name service, commands can reach by address what they cannot
/// resolve, so an unresolved name does not prove isolation.
async fn resolve_addresses(entries: &[String], known: &mut KnownAddresses) -> ResolvedAddresses {
    let mut found = ResolvedAddresses::default();
    for entry in entries {
        if let Ok(address) = entry.parse::<SocketAddr>() {
            found.addresses.push(address);
            continue;
        }
        found.names += 1;
        let answer = match tokio::time::timeout(RESOLUTION_TIME, tokio::net::lookup_host(entry)).await {
            Ok(Ok(addresses)) => addresses.collect(),
            Ok(Err(error)) => {
                tracing::warn!(
                    name = entry,
                    error = %format_error_chain(&error),
                    "a forbidden address does not resolve, so only its last addresses are tried"
                );
                Vec::new()
            }
            Err(_) => {
                tracing::warn!(
                    name = entry,
                    "a forbidden address does not resolve in time, so only its last addresses are tried"
                );
                Vec::new()
            }
        };
        let addresses = known.record(entry, answer);
        found.resolved += usize::from(!addresses.is_empty());
        found.addresses.extend(addresses);
    }
    found.addresses.sort();
    found.addresses.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn lost_name_is_tested_at_last_addresses() {
        // A reserved name (RFC 2606): no name service resolves it.
        let (name, address) = ("nats.invalid:4222".to_owned(), "127.0.0.1:1".to_owned());
        let entries = [name.clone(), address.clone()];
        let mut known = KnownAddresses::default();
        let never = resolve_addresses(&entries, &mut known).await;
        assert_eq!(never.addresses, [parse_address(&address)]);
        assert_eq!((never.names, never.resolved), (1, 0));
        known.record(&name, vec![parse_address("10.0.0.9:4222")]);
        let lost = resolve_addresses(&entries, &mut known).await;
        let both = [parse_address("10.0.0.9:4222"), parse_address(&address)];
        assert_eq!((&lost.addresses[..], lost.resolved), (&both[..], 1));
        let moved = known.record(&name, vec![parse_address("10.0.0.10:4222")]);
        assert_eq!(moved, [parse_address("10.0.0.10:4222")]);
    }

    #[test]
    fn only_names_without_answer_prove_nothing() {
        let build = |addresses: usize, names, resolved| ResolvedAddresses {
            addresses: vec![parse_address("127.0.0.1:1"); addresses],
            names,
            resolved,
        };
        assert!(build(0, 1, 0).is_unresolved());
        assert!(build(1, 3, 0).is_unresolved());
        assert!(!build(1, 1, 0).is_unresolved());
        assert!(!build(2, 3, 1).is_unresolved());
        assert!(!build(1, 0, 0).is_unresolved());
    }
}

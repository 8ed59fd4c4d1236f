//! Names and messages that the host and the pod of the stand-ins share.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use domain::TicketKey;
use e2e::VendorAddresses;
use serde::{Deserialize, Serialize};

/// Namespace of the system under test.
pub(crate) const INSIDE: &str = "journeyman-test";
/// Namespace of the stand-ins, outside the system under test.
pub(crate) const OUTSIDE: &str = "journeyman-test-outside";
/// Pod of the stand-ins.
pub(crate) const POD: &str = "stand-ins";
/// Port of [`POD`] for orders from the host.
pub(crate) const CONTROL_PORT: u16 = 8080;
/// Port of [`POD`] that answers every connection. No part of the system uses it.
pub(crate) const PLANTED_PORT: u16 = 9999;
/// Folder in [`POD`] with certificates, keys and the operator's token.
pub(crate) const FILES: &str = "/run/secrets/stand-ins";

/// Host names of GitHub, Jira and the model in the cluster.
pub(crate) fn list_vendor_hosts() -> [String; 3] {
    ["github", "jira", "model"].map(|name| format!("{name}.{OUTSIDE}.svc"))
}

/// URLs of the stand-ins for the system under test.
pub(crate) fn build_vendor_addresses() -> VendorAddresses {
    let [github, jira, model] = list_vendor_hosts().map(|name| format!("https://{name}"));
    VendorAddresses {
        github_git: format!("{github}/git"),
        github_api: github,
        jira,
        model,
    }
}

/// Order of concurrent tickets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TicketOrder {
    /// Number of concurrent tickets.
    pub(crate) tickets: usize,
    /// Test command of each ticket.
    pub(crate) command: String,
    /// Webhooks during the round.
    pub(crate) webhooks: Option<WebhookLoad>,
}

/// Signed webhooks at a steady rate, each over a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WebhookLoad {
    /// Number of webhooks per second.
    pub(crate) per_second: u32,
    /// Shortest duration in seconds. The webhooks continue while tickets are in progress.
    pub(crate) least_s: u64,
}

/// Answers to the sent webhooks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WebhookCount {
    /// Number answered with 202.
    pub(crate) accepted: u64,
    /// Other answers by status; 0 counts those without an answer within 10 s.
    pub(crate) refused: BTreeMap<u16, u64>,
    /// Longest time until a 202 answer, in milliseconds.
    pub(crate) slowest_ms: u64,
    /// Seconds in which a refused webhook was sent, counted from the first webhook.
    pub(crate) refused_in_s: BTreeSet<u64>,
}

impl WebhookCount {
    /// Counts a webhook: its status if answered, the time since the first webhook, and the duration.
    pub(crate) fn add(&mut self, status: Option<u16>, sent: Duration, took: Duration) {
        if status == Some(202) {
            let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            self.accepted += 1;
            self.slowest_ms = self.slowest_ms.max(took);
        } else {
            *self.refused.entry(status.unwrap_or_default()).or_default() += 1;
            self.refused_in_s.insert(sent.as_secs());
        }
    }

    /// Number of all webhooks.
    pub(crate) fn sent(&self) -> u64 {
        self.accepted + self.refused.values().sum::<u64>()
    }

    /// Total time of refusals. A partition has one such time at its start and one at its end.
    pub(crate) fn refused_for(&self) -> Duration {
        Duration::from_secs(self.refused_in_s.len() as u64)
    }
}

/// Progress and result of a round.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TicketRound {
    /// True if nothing changes any more.
    pub(crate) is_over: bool,
    /// Number of ordered tickets.
    pub(crate) tickets: usize,
    /// Number of tickets with a merged pull request.
    pub(crate) done: usize,
    /// Seconds since the order.
    pub(crate) wall_s: u64,
    /// Missing or wrong results, one description each.
    pub(crate) lost: Vec<String>,
    /// Duplicate results, one description each.
    pub(crate) doubled: Vec<String>,
    /// Outputs of the commands, as the model received them.
    pub(crate) outputs: Vec<String>,
    /// Longest time without a finished ticket, in seconds.
    pub(crate) pause_s: u64,
    /// Additional webhooks of the round.
    pub(crate) webhooks: WebhookCount,
    /// Accepted webhooks of the stand-ins themselves.
    pub(crate) own_webhooks: u64,
}

/// Parses the key of a Jira ticket.
pub(crate) fn parse_ticket_key(key: &str) -> anyhow::Result<TicketKey> {
    Ok(TicketKey::jira(key)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhook_count_adds_seconds_of_refusals() {
        let mut count = WebhookCount::default();
        let ms = Duration::from_millis;
        count.add(Some(202), ms(0), ms(40));
        assert_eq!(count.refused_for(), Duration::ZERO);
        // An answer that comes late belongs to the second in which the webhook was sent.
        let answers = [
            (None, 3_000),
            (Some(503), 1_000),
            (Some(202), 2_000),
            (None, 3_500),
            (None, 50_500),
        ];
        for (status, sent) in answers {
            count.add(status, ms(sent), ms(10));
        }
        assert_eq!((count.sent(), count.accepted, count.slowest_ms), (6, 2, 40));
        assert_eq!(count.refused, BTreeMap::from([(0, 3), (503, 1)]));
        assert_eq!(count.refused_for(), Duration::from_secs(3));
    }
}

//! What the host and the pod of the stand-ins both name, and what they say to each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use domain::TicketKey;
use e2e::Outside;
use serde::{Deserialize, Serialize};

/// Where the system under test runs.
pub(crate) const INSIDE: &str = "journeyman-test";
/// Where the stand-ins run: the outside, as far as the system under test is concerned.
pub(crate) const OUTSIDE: &str = "journeyman-test-outside";
/// The pod of the stand-ins, and where it is told what to do.
pub(crate) const POD: &str = "stand-ins";
/// The port of [`POD`] for the host.
pub(crate) const CONTROL_PORT: u16 = 8080;
/// A port of [`POD`] that answers whoever connects, and that nobody of the system has business with.
pub(crate) const PLANTED_PORT: u16 = 9999;
/// Certificates, keys and the operator's token in [`POD`].
pub(crate) const FILES: &str = "/run/secrets/stand-ins";

/// The names of GitHub, Jira and the model in the cluster.
pub(crate) fn vendors() -> [String; 3] {
    ["github", "jira", "model"].map(|name| format!("{name}.{OUTSIDE}.svc"))
}

/// Where the stand-ins are for the system under test.
pub(crate) fn outside() -> Outside {
    let [github, jira, model] = vendors().map(|name| format!("https://{name}"));
    Outside {
        github_git: format!("{github}/git"),
        github_api: github,
        jira,
        model,
    }
}

/// Tickets that are asked for at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// How many.
    pub(crate) tickets: usize,
    /// What the test command of each does.
    pub(crate) command: String,
    /// Webhooks that are sent during the round.
    pub(crate) webhooks: Option<WebhookLoad>,
}

/// Signed webhooks at a steady rate beside the tickets, each over a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WebhookLoad {
    /// Webhooks per second.
    pub(crate) per_second: u32,
    /// For as long as there are tickets, and at least for so many seconds.
    pub(crate) least_s: u64,
}

/// Answers to webhooks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WebhookCount {
    /// Answered with 202.
    pub(crate) accepted: u64,
    /// Answered otherwise, by status; 0: not within 10 s.
    pub(crate) refused: BTreeMap<u16, u64>,
    /// The longest time until an answer with 202.
    pub(crate) slowest_ms: u64,
    /// The seconds in which one was sent that was refused, counted from the first of all.
    pub(crate) refused_in_s: BTreeSet<u64>,
}

impl WebhookCount {
    /// Counts one that was sent at a time after the first and answered with a status, or not.
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

    /// All.
    pub(crate) fn sent(&self) -> u64 {
        self.accepted + self.refused.values().sum::<u64>()
    }

    /// Time in which webhooks were refused, summed up: a partition has one such time at its start and one at its end.
    pub(crate) fn refused_for(&self) -> Duration {
        Duration::from_secs(self.refused_in_s.len() as u64)
    }
}

/// How far they are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Round {
    /// Nothing changes any more.
    pub(crate) is_over: bool,
    /// Asked for.
    pub(crate) tickets: usize,
    /// Done, with a merged pull request.
    pub(crate) done: usize,
    /// Since they were asked for.
    pub(crate) wall_s: u64,
    /// What is missing or wrong.
    pub(crate) lost: Vec<String>,
    /// What is there twice.
    pub(crate) doubled: Vec<String>,
    /// What each command printed that the model was shown.
    pub(crate) outputs: Vec<String>,
    /// The longest time in which no ticket became done.
    pub(crate) pause_s: u64,
    /// Webhooks that were sent during the round.
    pub(crate) webhooks: WebhookCount,
    /// Webhooks of the stand-ins themselves that were accepted in this round.
    pub(crate) own_webhooks: u64,
}

/// A ticket of the stand-in of Jira.
pub(crate) fn ticket(key: &str) -> anyhow::Result<TicketKey> {
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

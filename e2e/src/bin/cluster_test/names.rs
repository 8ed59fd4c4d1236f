//! What the host and the pod of the stand-ins both name, and what they say to each other.

use std::{collections::BTreeMap, time::Duration};

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
    /// What is sent beside them.
    pub(crate) webhooks: Option<WebhookLoad>,
}

/// Signed webhooks at a steady rate beside the tickets, each over a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WebhookLoad {
    /// How many.
    pub(crate) per_second: u32,
    /// For as long as there are tickets, and at least for so many seconds.
    pub(crate) least_s: u64,
}

/// How webhooks were answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WebhookCount {
    /// Answered with 202.
    pub(crate) accepted: u64,
    /// Answered otherwise, by status; 0: not within 10 s.
    pub(crate) refused: BTreeMap<u16, u64>,
    /// The longest time until an answer with 202.
    pub(crate) slowest_ms: u64,
    /// When the first and the last that was refused were sent, since the first of all.
    pub(crate) refused_between_ms: Option<(u64, u64)>,
}

impl WebhookCount {
    /// Counts one that was sent at a time after the first and answered with a status, or not.
    pub(crate) fn add(&mut self, status: Option<u16>, sent: Duration, took: Duration) {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        if status == Some(202) {
            self.accepted += 1;
            self.slowest_ms = self.slowest_ms.max(ms(took));
            return;
        }
        *self.refused.entry(status.unwrap_or_default()).or_default() += 1;
        let sent = ms(sent);
        let (first, last) = self.refused_between_ms.unwrap_or((sent, sent));
        self.refused_between_ms = Some((first.min(sent), last.max(sent)));
    }

    /// All.
    pub(crate) fn sent(&self) -> u64 {
        self.accepted + self.refused.values().sum::<u64>()
    }

    /// From the first that was refused to the last.
    pub(crate) fn refused_for(&self) -> Duration {
        let span = self.refused_between_ms.map_or(0, |(first, last)| last - first);
        Duration::from_millis(span)
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
    /// What was sent beside the tickets.
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
    fn webhook_count_keeps_span_of_refusals() {
        let mut count = WebhookCount::default();
        let ms = Duration::from_millis;
        count.add(Some(202), ms(0), ms(40));
        assert_eq!(count.refused_for(), Duration::ZERO);
        // An answer that comes late belongs to the moment at which the webhook was sent.
        for (status, sent) in [
            (None, 3_000),
            (Some(503), 1_000),
            (Some(202), 2_000),
            (None, 4_500),
        ] {
            count.add(status, ms(sent), ms(10));
        }
        assert_eq!((count.sent(), count.accepted, count.slowest_ms), (5, 2, 40));
        assert_eq!(count.refused, BTreeMap::from([(0, 2), (503, 1)]));
        assert_eq!(count.refused_for(), ms(3_500));
    }
}

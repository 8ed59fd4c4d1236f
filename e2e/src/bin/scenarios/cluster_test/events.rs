//! Events of the cluster during a round of tickets.

use std::time::Duration;

use crate::cluster_test::names::WebhookLoad;

/// Webhooks per second in the round about them, and during other disturbances.
const MANY_WEBHOOKS: u32 = 20;
const SOME_WEBHOOKS: u32 = 10;
// Shortest duration of the webhooks in seconds. It covers a disturbance even if the tickets are done earlier.
const LEAST_S: u64 = 40;

/// Kind of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ClusterEvent {
    /// Nothing
    Nothing,
    /// Executors are scaled up, down and up
    Scale,
    /// All workloads are restarted at once
    Restart,
    /// A node is drained
    Drain,
    /// A NATS server is killed
    Kill,
    /// Ingest is restarted pod by pod under 20 signed webhooks per second, each over a new connection. Every
    /// webhook must be answered with 202 and stored in the stream
    Webhooks,
    /// A planner, an executor and a NATS server are deleted at once without a grace period, under webhooks
    ForceDelete,
    /// Redis is deleted and absent for 30 s, under webhooks
    Redis,
    /// A NATS server and an executor lose their network for 50 s, silently, as if their nodes were lost,
    /// under webhooks. Their pods get an ephemeral container with `NET_ADMIN`, which changes the routing
    /// rules of the pod's network. So established connections break too, which the network policies of most
    /// engines do not affect. It needs no root on a node; the namespace's security standard is `privileged`
    /// while the containers are added. It does not cover the loss of a node's disk, its DNS server or the
    /// addresses of services
    Partition,
    /// NATS has little storage, and tickets leave more than fits, under webhooks. After 30 s the round
    /// applies the runbook's recovery, and every ticket must continue
    FullStore,
    /// A command of a ticket tries to reach every address
    Contained,
    /// The autoscaler scales the executors. It needs the component `keda` and is not part of the default
    Autoscale,
}

/// Bounds of a round, in addition to no lost and no duplicate work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoundBounds {
    /// Total time in which webhooks are refused.
    pub(crate) refusing: Duration,
    /// Longest time without a finished ticket.
    pub(crate) pause: Duration,
    /// Number of wake-ups that a sweep had to repair.
    pub(crate) wake_ups: usize,
}

impl ClusterEvent {
    /// Rounds that every cluster supports, in the order of play.
    pub(crate) const ALL: [Self; 11] = [
        Self::Nothing,
        Self::Scale,
        Self::Restart,
        Self::Drain,
        Self::Kill,
        Self::Webhooks,
        Self::ForceDelete,
        Self::Redis,
        Self::Partition,
        Self::FullStore,
        Self::Contained,
    ];

    /// Name in the table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Scale => "executors 2 → 4 → 1 → 3",
            Self::Restart => "rollout restart of all seven workloads at once",
            Self::Drain => "drain of a node",
            Self::Kill => "a NATS server killed",
            Self::Webhooks => "rollout restart of ingest",
            Self::ForceDelete => "planner, executor and NATS server deleted by force",
            Self::Redis => "no Redis for 30 s",
            Self::Partition => "NATS server and executor cut off for 50 s",
            Self::FullStore => "a full store, and the way out",
            Self::Contained => "a command tries every address",
            Self::Autoscale => "the autoscaler follows",
        }
    }

    /// Webhooks that are sent during the round.
    pub(crate) const fn webhooks(self) -> Option<WebhookLoad> {
        let per_second = match self {
            Self::Webhooks => MANY_WEBHOOKS,
            Self::ForceDelete | Self::Redis | Self::Partition | Self::FullStore => SOME_WEBHOOKS,
            Self::Nothing
            | Self::Scale
            | Self::Restart
            | Self::Drain
            | Self::Kill
            | Self::Contained
            | Self::Autoscale => return None,
        };
        Some(WebhookLoad {
            per_second,
            least_s: LEAST_S,
        })
    }

    /// Bounds of the round.
    pub(crate) const fn bounds(self) -> RoundBounds {
        let (refusing_s, pause_s) = match self {
            // Webhooks are refused at the start, until a service has noticed the silent server and
            // reconnected, and at the end, until the servers have elected their leaders.
            Self::Partition => (25, 60),
            // No ticket completes between the moment at which the store is full and the one at which storage
            // is added.
            Self::FullStore => (0, 240),
            // A new server and new services have to start.
            Self::ForceDelete | Self::Restart | Self::Drain | Self::Kill | Self::Autoscale => (0, 90),
            Self::Nothing | Self::Scale | Self::Webhooks | Self::Redis | Self::Contained => (0, 60),
        };
        RoundBounds {
            refusing: Duration::from_secs(refusing_s),
            pause: Duration::from_secs(pause_s),
            wake_ups: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn all_holds_everything_but_autoscale() {
        let missing: Vec<_> = ClusterEvent::value_variants()
            .iter()
            .filter(|event| !ClusterEvent::ALL.contains(event))
            .collect();
        assert_eq!(missing, [&ClusterEvent::Autoscale]);
    }

    #[test]
    fn webhooks_are_refused_in_partition_alone() {
        for event in ClusterEvent::value_variants() {
            let may_refuse = event.bounds().refusing > Duration::ZERO;
            assert_eq!(may_refuse, *event == ClusterEvent::Partition, "{event:?}");
            assert!(!may_refuse || event.webhooks().is_some());
        }
    }
}

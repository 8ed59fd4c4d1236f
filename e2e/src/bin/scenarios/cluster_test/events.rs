//! Events of the cluster while tickets are under way.

use std::time::Duration;

use crate::cluster_test::names::WebhookLoad;

/// Webhooks per second where a round is about them, and beside other disturbances.
const MANY_WEBHOOKS: u32 = 20;
const SOME_WEBHOOKS: u32 = 10;
/// For as long as a disturbance takes, even where tickets are done earlier.
const LEAST_S: u64 = 40;

/// One kind of round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ClusterEvent {
    /// Nothing
    Nothing,
    /// Executors are scaled up, down and up
    Scale,
    /// Every workload is restarted at once
    Restart,
    /// A node is drained
    Drain,
    /// A NATS server is killed
    Kill,
    /// Ingest is restarted pod by pod while signed webhooks come, 20 a second, each over a new connection: every one must be answered
    /// with 202, and be in the stream
    Webhooks,
    /// A planner, an executor and a NATS server are deleted at once without time to stop; webhooks come meanwhile
    ForceDelete,
    /// Redis is deleted and stays away for 30 s; webhooks come meanwhile
    Redis,
    /// A NATS server and an executor are cut off for 50 s, silently, as if their nodes were lost; webhooks come meanwhile. Their pods
    /// get an ephemeral container with `NET_ADMIN`, which changes the routing rules of the pod's own network: so connections that are
    /// established are cut too, which network policies of most engines leave alone. It takes no root on a node; the namespace's
    /// security standard is `privileged` for the moment in which the containers are added. What it does not show: the loss of a
    /// node's disk, of its name server, and of the addresses of services
    Partition,
    /// NATS has little room, and tickets leave more than fits; webhooks come meanwhile. After 30 s the round takes the runbook's way
    /// out, and every ticket must go on
    FullStore,
    /// A command of a ticket tries to reach everything
    Contained,
    /// The autoscaler scales the executors; takes the component `keda`, and is not among all
    Autoscale,
}

/// Bounds of a round, besides that nothing is lost or doubled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoundBounds {
    /// Time in which webhooks are refused, all of it together.
    pub(crate) refusing: Duration,
    /// The longest time in which no ticket becomes done.
    pub(crate) pause: Duration,
    /// Wake-ups that a sweep had to repair.
    pub(crate) wake_ups: usize,
}

impl ClusterEvent {
    /// All that every cluster can, in the order in which they are played.
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

    /// Its name in the table.
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

    /// The webhooks that are sent beside its tickets.
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

    /// Its bounds.
    pub(crate) const fn bounds(self) -> RoundBounds {
        let (refusing_s, pause_s) = match self {
            // At the start until a service has noticed the silent server and found another one, at the end until the servers have
            // chosen their leaders.
            Self::Partition => (25, 60),
            // Nothing becomes done from the moment at which the store is full to that at which there is room.
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

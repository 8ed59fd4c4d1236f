//! Round in which the autoscaler of the component `keda` alone decides the number of executors.

use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use crate::cluster_test::{kubectl, names::INSIDE};

/// Interval of reading the number of executors.
const TICK: Duration = Duration::from_secs(1);
// Time limit to reach the minimum. The kustomization must permit an immediate scale-down, not one pod per ten
// minutes.
const AT_REST: Duration = Duration::from_secs(420);

/// Limits and observed maximum of the number of executors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AutoscaleWatch {
    least: u64,
    most: u64,
    limit: u64,
}

impl AutoscaleWatch {
    /// Reads the limits and waits until no demand of an earlier round remains.
    ///
    /// # Errors
    /// When no `ScaledObject` scales the executors, or their number does not fall to the minimum.
    pub(crate) async fn at_rest() -> anyhow::Result<Self> {
        let scaled = kubectl::get_json(&["-n", INSIDE, "scaledobject", "executor"])
            .await
            .context(
                "nothing scales the executors; name a kustomization with the component k8s/components/keda",
            )?;
        let number = |name: &str| scaled["spec"][name].as_u64();
        let least = number("minReplicaCount").unwrap_or_default();
        let limit = number("maxReplicaCount").context("maxReplicaCount")?;
        let this = Self {
            least,
            most: least,
            limit,
        };
        this.rest().await?;
        Ok(this)
    }

    /// Records the maximum number of executors until it is dropped.
    pub(crate) async fn watch(&mut self) -> anyhow::Result<()> {
        loop {
            self.most = self.most.max(read_executor_replicas().await?.wanted);
            sleep(TICK).await;
        }
    }

    /// Waits for the minimum number of executors.
    ///
    /// # Errors
    /// When more executors remain after seven minutes.
    pub(crate) async fn rest(&self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let rested = async {
            while !read_executor_replicas().await?.is(self.least) {
                sleep(TICK).await;
            }
            anyhow::Ok(start.elapsed())
        };
        timeout(AT_REST, rested)
            .await
            .with_context(|| format!("there are more than {} executors still", self.least))?
    }

    /// True if the number rose during the work and stayed within the limit.
    pub(crate) const fn is_good(self) -> bool {
        self.least < self.most && self.most <= self.limit
    }

    /// Note for the table.
    pub(crate) fn note(self) -> String {
        format!("{0} → {1} → {0}", self.least, self.most)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ExecutorReplicas {
    wanted: u64,
    there: u64,
}

impl ExecutorReplicas {
    fn of(deployment: &Value) -> Self {
        let number = |part: &str| deployment[part]["replicas"].as_u64().unwrap_or_default();
        Self {
            wanted: number("spec"),
            there: number("status"),
        }
    }

    const fn is(self, number: u64) -> bool {
        self.wanted == number && self.there == number
    }
}

async fn read_executor_replicas() -> anyhow::Result<ExecutorReplicas> {
    let deployment = kubectl::get_json(&["-n", INSIDE, "deployment", "executor"]).await?;
    Ok(ExecutorReplicas::of(&deployment))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn executors_rest_after_last_pod_ends() {
        let leaving = ExecutorReplicas::of(&json!({"spec": {"replicas": 0}, "status": {"replicas": 1}}));
        let gone = ExecutorReplicas::of(&json!({"spec": {"replicas": 0}, "status": {}}));
        assert_eq!([leaving.is(0), gone.is(0)], [false, true]);
    }

    #[test]
    fn autoscale_round_requires_additional_executor() {
        let seen = |most| AutoscaleWatch {
            least: 0,
            most,
            limit: 4,
        };
        assert_eq!(
            [0, 1, 4, 5].map(|most| seen(most).is_good()),
            [false, true, true, false]
        );
        assert_eq!(seen(4).note(), "0 → 4 → 0");
    }
}

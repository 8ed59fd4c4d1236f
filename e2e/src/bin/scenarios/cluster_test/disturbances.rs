//! Disturbances of the cluster while the tickets of a round are in progress.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::sleep;

use crate::cluster_test::{
    events::ClusterEvent,
    isolation::cut_off_pods,
    kubectl::{self, WORKLOADS, last_pod, run_inside, run_kubectl},
    names::{INSIDE, OUTSIDE, POD},
};

/// Time between two scalings of the executors.
const SCALED: Duration = Duration::from_secs(15);
/// Time limit of one change to the cluster.
pub(crate) const CHANGE: Duration = Duration::from_secs(300);
/// Time for which Redis is absent.
const WITHOUT_REDIS: Duration = Duration::from_secs(30);
/// Number of executors in the base, and the numbers of the scalings.
const EXECUTORS: [&str; 3] = ["4", "1", "3"];

/// Causes the disturbance of the event and returns a note for the table.
///
/// # Errors
/// When the cluster does not complete it in time.
pub(crate) async fn disturb_cluster(event: ClusterEvent) -> anyhow::Result<String> {
    match event {
        ClusterEvent::Nothing
        | ClusterEvent::Contained
        | ClusterEvent::Autoscale
        | ClusterEvent::FullStore => Ok(String::new()),
        ClusterEvent::Scale => scale_executors().await,
        ClusterEvent::Restart => restart_workloads().await,
        ClusterEvent::Drain => drain_node().await,
        ClusterEvent::Kill => kill_nats_server().await,
        ClusterEvent::Webhooks => roll_ingest().await,
        ClusterEvent::ForceDelete => delete_pods_by_force().await,
        ClusterEvent::Redis => take_redis_away().await,
        ClusterEvent::Partition => cut_off_pods().await,
    }
}

async fn scale_executors() -> anyhow::Result<String> {
    for count in EXECUTORS {
        let replicas = format!("--replicas={count}");
        run_inside(CHANGE, &["scale", "deployment/executor", &replicas]).await?;
        sleep(SCALED).await;
    }
    Ok(String::new())
}

async fn restart_workloads() -> anyhow::Result<String> {
    run_inside(CHANGE, &[&["rollout", "restart"][..], &WORKLOADS].concat()).await?;
    kubectl::wait_until_ready().await?;
    Ok(String::new())
}

/// Drains a node and makes it schedulable again.
async fn drain_node() -> anyhow::Result<String> {
    let Some((node, pods)) = node_to_drain().await? else {
        return Ok("skipped: there is one node".to_owned());
    };
    let arguments = [
        "drain",
        &node,
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        // Only the pods of this test are evicted.
        "--pod-selector=app.kubernetes.io/instance=cluster-test",
        "--timeout=240s",
    ];
    let drained = run_inside(CHANGE, &arguments).await;
    // The node accepts pods again even after a failed drain: in a small cluster NATS has no other node to
    // start on.
    run_kubectl(&["uncordon", &node]).await?;
    drained?;
    Ok(format!("with {}", pods.join(", ")))
}

/// Selects the node with the most services, preferably with NATS and an executor, and returns it with its
/// services. The node of the stand-ins is never selected.
async fn node_to_drain() -> anyhow::Result<Option<(String, Vec<String>)>> {
    let stand_ins = kubectl::get_json(&["-n", OUTSIDE, "pod", POD]).await?;
    let pods = kubectl::get_json(&["-n", INSIDE, "pods"]).await?;
    let mut nodes = BTreeMap::<String, Vec<String>>::new();
    for pod in pods["items"].as_array().into_iter().flatten() {
        let (node, label) = (
            &pod["spec"]["nodeName"],
            &pod["metadata"]["labels"]["app.kubernetes.io/name"],
        );
        if let (Some(node), Some(service)) = (node.as_str(), label.as_str()) {
            nodes.entry(node.to_owned()).or_default().push(service.to_owned());
        }
    }
    nodes.retain(|node, services| {
        services.sort();
        stand_ins["spec"]["nodeName"] != node.as_str()
    });
    let has = |services: &[String], name: &str| services.iter().any(|service| service == name);
    Ok(nodes
        .into_iter()
        .max_by_key(|(_, there)| (has(there, "nats"), has(there, "executor"), there.len())))
}

async fn kill_nats_server() -> anyhow::Result<String> {
    run_inside(
        CHANGE,
        &["delete", "pod", "nats-1", "--force", "--grace-period=0"],
    )
    .await?;
    kubectl::wait_until_ready().await?;
    Ok(String::new())
}

async fn roll_ingest() -> anyhow::Result<String> {
    run_inside(CHANGE, &["rollout", "restart", "deployment/ingest"]).await?;
    kubectl::wait_until_ready().await?;
    Ok(String::new())
}

/// Deletes three pods at once without a grace period.
async fn delete_pods_by_force() -> anyhow::Result<String> {
    let mut pods = Vec::new();
    for workload in ["planner", "executor", "nats"] {
        pods.push(last_pod(workload).await?);
    }
    let mut arguments = vec!["delete", "pod", "--force", "--grace-period=0"];
    arguments.extend(pods.iter().map(String::as_str));
    run_inside(CHANGE, &arguments).await?;
    kubectl::wait_until_ready().await?;
    Ok(pods.join(", "))
}

/// Removes Redis for a while and restores it, even after an error.
async fn take_redis_away() -> anyhow::Result<String> {
    let away = async {
        run_inside(CHANGE, &["scale", "deployment/redis", "--replicas=0"]).await?;
        // The scaling alone would let Redis end in order.
        let pods = "--selector=app.kubernetes.io/name=redis";
        run_inside(CHANGE, &["delete", "pod", pods, "--force", "--grace-period=0"]).await?;
        sleep(WITHOUT_REDIS).await;
        anyhow::Ok(())
    };
    let away = away.await;
    run_inside(CHANGE, &["scale", "deployment/redis", "--replicas=1"]).await?;
    away?;
    kubectl::wait_until_ready().await?;
    Ok(String::new())
}

//! What each round does to the cluster while its tickets are under way.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::sleep;

use crate::{
    events::Event,
    isolation::cut_off_pods,
    kubectl::{self, WORKLOADS, inside, kubectl, last_pod},
    names::{INSIDE, OUTSIDE, POD},
};

/// Between two numbers of executors.
const SCALED: Duration = Duration::from_secs(15);
/// What one change to the cluster may take.
pub(crate) const CHANGE: Duration = Duration::from_secs(300);
/// How long Redis stays away.
const WITHOUT_REDIS: Duration = Duration::from_secs(30);
/// Executors in the base, and from one number to the next.
const EXECUTORS: [&str; 3] = ["4", "1", "3"];

/// Does to the cluster what the event says; gives what there is to say about it.
///
/// # Errors
/// When the cluster does not do it in time.
pub(crate) async fn happen(event: Event) -> anyhow::Result<String> {
    match event {
        Event::Nothing | Event::Contained | Event::Autoscale | Event::FullStore => Ok(String::new()),
        Event::Scale => scale().await,
        Event::Restart => restart().await,
        Event::Drain => drain().await,
        Event::Kill => kill().await,
        Event::Webhooks => roll_ingest().await,
        Event::ForceDelete => force_delete().await,
        Event::Redis => take_redis_away().await,
        Event::Partition => cut_off_pods().await,
    }
}

async fn scale() -> anyhow::Result<String> {
    for count in EXECUTORS {
        let replicas = format!("--replicas={count}");
        inside(CHANGE, &["scale", "deployment/executor", &replicas]).await?;
        sleep(SCALED).await;
    }
    Ok(String::new())
}

async fn restart() -> anyhow::Result<String> {
    inside(CHANGE, &[&["rollout", "restart"][..], &WORKLOADS].concat()).await?;
    kubectl::ready().await?;
    Ok(String::new())
}

/// Drains a node and lets pods onto it again.
async fn drain() -> anyhow::Result<String> {
    let Some((node, pods)) = node_to_drain().await? else {
        return Ok("skipped: there is one node".to_owned());
    };
    let arguments = [
        "drain",
        &node,
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        "--pod-selector=app.kubernetes.io/instance=cluster-test",
        "--timeout=240s",
    ];
    let drained = inside(CHANGE, &arguments).await;
    // Whatever became of it, the node takes pods again: where nodes are few, NATS waits for one.
    kubectl(&["uncordon", &node]).await?;
    drained?;
    Ok(format!("with {}", pods.join(", ")))
}

/// The node with most to lose, and the services on it; never that of the stand-ins.
async fn node_to_drain() -> anyhow::Result<Option<(String, Vec<String>)>> {
    let stand_ins = kubectl::get(&["-n", OUTSIDE, "pod", POD]).await?;
    let pods = kubectl::get(&["-n", INSIDE, "pods"]).await?;
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

async fn kill() -> anyhow::Result<String> {
    inside(
        CHANGE,
        &["delete", "pod", "nats-1", "--force", "--grace-period=0"],
    )
    .await?;
    kubectl::ready().await?;
    Ok(String::new())
}

async fn roll_ingest() -> anyhow::Result<String> {
    inside(CHANGE, &["rollout", "restart", "deployment/ingest"]).await?;
    kubectl::ready().await?;
    Ok(String::new())
}

/// Deletes three pods at once, none of which gets time to stop.
async fn force_delete() -> anyhow::Result<String> {
    let mut pods = Vec::new();
    for workload in ["planner", "executor", "nats"] {
        pods.push(last_pod(workload).await?);
    }
    let mut arguments = vec!["delete", "pod", "--force", "--grace-period=0"];
    arguments.extend(pods.iter().map(String::as_str));
    inside(CHANGE, &arguments).await?;
    kubectl::ready().await?;
    Ok(pods.join(", "))
}

/// Takes Redis away for a while, and brings it back whatever happens meanwhile.
async fn take_redis_away() -> anyhow::Result<String> {
    let away = async {
        inside(CHANGE, &["scale", "deployment/redis", "--replicas=0"]).await?;
        let pods = "--selector=app.kubernetes.io/name=redis";
        inside(CHANGE, &["delete", "pod", pods, "--force", "--grace-period=0"]).await?;
        sleep(WITHOUT_REDIS).await;
        anyhow::Ok(())
    };
    let away = away.await;
    inside(CHANGE, &["scale", "deployment/redis", "--replicas=1"]).await?;
    away?;
    kubectl::ready().await?;
    Ok(String::new())
}

//! What each round does to the cluster while its tickets are under way.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::sleep;

use crate::{
    events::Event,
    kubectl::{self, WORKLOADS, inside, kubectl},
    names::{INSIDE, OUTSIDE, POD},
};

/// Between two numbers of executors.
const SCALED: Duration = Duration::from_secs(15);
/// What one change to the cluster may take.
pub(crate) const CHANGE: Duration = Duration::from_secs(300);
/// Executors in the base, and from one number to the next.
const EXECUTORS: [&str; 3] = ["4", "1", "3"];

/// Does to the cluster what the event says; gives what there is to say about it.
///
/// # Errors
/// When the cluster does not do it in time.
pub(crate) async fn happen(event: Event) -> anyhow::Result<String> {
    match event {
        Event::Nothing | Event::Contained | Event::Autoscale => Ok(String::new()),
        Event::Scale => scale().await,
        Event::Restart => restart().await,
        Event::Drain => drain().await,
        Event::Kill => kill().await,
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

//! Network loss of a NATS server and an executor, as if their nodes were lost.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::cluster_test::{
    kubectl::{self, replace_raw, run_kubectl},
    names::{INSIDE, OUTSIDE, POD},
};

// Duration of the isolation. It also blocks the kubelet's probes, and after 60 s the liveness probe of an
// executor would restart it, which does not happen on a lost node.
const CUT_OFF: Duration = Duration::from_secs(50);
/// Time limit of a container's start, and of the report of its end.
const STARTED: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_secs(1);
/// Label of a namespace that selects its pod security standard.
const STANDARD: &str = "pod-security.kubernetes.io/enforce";
/// The program in the image of the stand-ins, whose entry point is another part of it.
const PROGRAM: &str = "/usr/local/bin/scenarios";
/// Workloads of which one pod loses its network.
const CUT_OFF_WORKLOADS: [&str; 2] = ["nats", "executor"];

/// Isolates a NATS server and an executor and returns the names of their pods.
///
/// # Errors
/// When the cluster refuses a container with `NET_ADMIN`, or it fails.
pub(crate) async fn cut_off_pods() -> anyhow::Result<String> {
    let mut pods = Vec::new();
    for workload in CUT_OFF_WORKLOADS {
        pods.push(kubectl::last_pod(workload).await?);
    }
    let image = stand_ins_image().await?;
    // A pod keeps its ephemeral containers, and their names are unique.
    let container = format!("isolation-{}", fastrand::u32(..));
    add_containers(&pods, &container, &image).await?;
    for pod in &pods {
        wait_for_end(pod, &container).await?;
    }
    kubectl::wait_until_ready().await?;
    Ok(pods.join(", "))
}

async fn stand_ins_image() -> anyhow::Result<String> {
    let pod = kubectl::get_json(&["-n", OUTSIDE, "pod", POD]).await?;
    let image = pod["spec"]["containers"][0]["image"].as_str();
    Ok(image.context("the image of the stand-ins")?.to_owned())
}

/// Adds the ephemeral containers. The standard `restricted` forbids `NET_ADMIN`. The API server checks it
/// only when a container is added, so the standard is relaxed for that moment alone.
async fn add_containers(pods: &[String], container: &str, image: &str) -> anyhow::Result<()> {
    let namespace = kubectl::get_json(&["namespace", INSIDE]).await?;
    let standard = namespace["metadata"]["labels"][STANDARD].as_str();
    let before = standard.map_or_else(
        || format!("{STANDARD}-"),
        |standard| format!("{STANDARD}={standard}"),
    );
    let relaxed = format!("{STANDARD}=privileged");
    run_kubectl(&["label", "--overwrite", "namespace", INSIDE, &relaxed]).await?;
    // The label is restored even if a pod refuses its container.
    let mut added = Ok(());
    for pod in pods {
        added = add_container(pod, container, image).await;
        if added.is_err() {
            break;
        }
    }
    run_kubectl(&["label", "--overwrite", "namespace", INSIDE, &before]).await?;
    added
}

async fn add_container(pod: &str, container: &str, image: &str) -> anyhow::Result<()> {
    let known = kubectl::get_json(&["-n", INSIDE, "pod", pod]).await?;
    let changed = with_container(known, container, image);
    let path = format!("/api/v1/namespaces/{INSIDE}/pods/{pod}/ephemeralcontainers");
    replace_raw(&path, &changed)
        .await
        .context("the cluster refuses an ephemeral container with NET_ADMIN; leave the round `partition` out")
}

/// Adds an ephemeral container to a pod, whose network it shares.
fn with_container(mut pod: Value, container: &str, image: &str) -> Value {
    let added = json!({
        "name": container,
        "image": image,
        "command": [PROGRAM, "cluster-test", "isolate", "--seconds", CUT_OFF.as_secs().to_string()],
        // The kernel requires `NET_ADMIN` in the pod's network namespace, and the capability is effective for
        // root alone.
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            "runAsNonRoot": false,
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
        },
    });
    match pod["spec"]["ephemeralContainers"].as_array_mut() {
        Some(containers) => containers.push(added),
        None => pod["spec"]["ephemeralContainers"] = json!([added]),
    }
    pod
}

/// Waits until the container has ended successfully.
async fn wait_for_end(pod: &str, container: &str) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        let known = kubectl::get_json(&["-n", INSIDE, "pod", pod]).await?;
        match ContainerState::of(&known, container) {
            ContainerState::Ended(0) => return Ok(()),
            ContainerState::Ended(code) => {
                anyhow::bail!("the container that isolates {pod} ended with {code}")
            }
            ContainerState::Waits(reason) => anyhow::ensure!(
                start.elapsed() < STARTED,
                "the container that isolates {pod} does not start: {reason}"
            ),
            ContainerState::Runs => anyhow::ensure!(
                start.elapsed() < STARTED + CUT_OFF + STARTED,
                "the container that isolates {pod} does not end"
            ),
        }
        sleep(TICK).await;
    }
}

/// State of an ephemeral container.
#[derive(Debug, PartialEq, Eq)]
enum ContainerState {
    Waits(String),
    Runs,
    Ended(i64),
}

impl ContainerState {
    fn of(pod: &Value, container: &str) -> Self {
        let all = pod["status"]["ephemeralContainerStatuses"].as_array();
        let found = all
            .into_iter()
            .flatten()
            .find(|status| status["name"] == container);
        let Some(state) = found.map(|status| &status["state"]) else {
            return Self::Waits("it is not known yet".to_owned());
        };
        if let Some(code) = state["terminated"]["exitCode"].as_i64() {
            Self::Ended(code)
        } else if state["running"].is_object() {
            Self::Runs
        } else {
            Self::Waits(
                state["waiting"]["reason"]
                    .as_str()
                    .unwrap_or("unknown")
                    .to_owned(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_joins_those_added_before() {
        let first = with_container(json!({"spec": {"containers": []}}), "a", "image");
        let second = with_container(first, "b", "image");
        let names: Vec<_> = second["spec"]["ephemeralContainers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|container| container["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn container_state_follows_kubelet_status() {
        let pod =
            |state: Value| json!({"status": {"ephemeralContainerStatuses": [{"name": "a", "state": state}]}});
        let state = |value| ContainerState::of(&pod(value), "a");
        assert_eq!(state(json!({"running": {}})), ContainerState::Runs);
        assert_eq!(
            state(json!({"terminated": {"exitCode": 1}})),
            ContainerState::Ended(1)
        );
        assert_eq!(
            state(json!({"waiting": {"reason": "ErrImagePull"}})),
            ContainerState::Waits("ErrImagePull".to_owned())
        );
        assert!(matches!(
            ContainerState::of(&json!({}), "a"),
            ContainerState::Waits(_)
        ));
    }
}

//! Access to the cluster of the current kubeconfig through `kubectl`. Every call has a time limit.

use std::{process::Stdio, time::Duration};

use anyhow::Context;
use serde_json::Value;
use tokio::{
    io::AsyncWriteExt,
    process::Command,
    time::{Instant, timeout},
};

use crate::cluster_test::names::{INSIDE, OUTSIDE};

/// Time limit of a read, or of a change without waiting.
const LIMIT: Duration = Duration::from_secs(60);
/// Time limit of readiness: NATS forms its cluster and images are unpacked.
const READY: Duration = Duration::from_secs(420);
/// Time limit of the removal of a namespace.
const GONE: Duration = Duration::from_secs(300);

/// All workloads with replicas.
pub(crate) const WORKLOADS: [&str; 7] = [
    "statefulset/nats",
    "deployment/redis",
    "deployment/reporter",
    "deployment/ingest",
    "deployment/planner",
    "deployment/egress",
    "deployment/executor",
];

/// Runs `kubectl` with these arguments and returns its output.
///
/// # Errors
/// When it fails or takes more than a minute.
pub(crate) async fn run_kubectl(arguments: &[&str]) -> anyhow::Result<String> {
    run_within(LIMIT, arguments, "").await
}

/// Runs `kubectl` in the namespace of the system under test with a separate time limit.
///
/// # Errors
/// When it fails or takes longer.
pub(crate) async fn run_inside(limit: Duration, arguments: &[&str]) -> anyhow::Result<String> {
    run_within(limit, &[&["-n", INSIDE], arguments].concat(), "").await
}

/// Reads objects as JSON.
///
/// # Errors
/// When `kubectl` fails or its output is not JSON.
pub(crate) async fn get_json(arguments: &[&str]) -> anyhow::Result<Value> {
    let text = run_kubectl(&[&["get", "-o", "json"], arguments].concat()).await?;
    serde_json::from_str(&text).context("kubectl get")
}

/// Reads a path of the API server, or posts a body to it.
///
/// # Errors
/// When the API server refuses.
pub(crate) async fn call_api(path: &str, body: Option<&str>) -> anyhow::Result<String> {
    match body {
        None => run_kubectl(&["get", "--raw", path]).await,
        Some(body) => run_within(LIMIT, &["create", "--raw", path, "-f", "-"], body).await,
    }
}

/// Replaces the object at a path of the API server.
///
/// # Errors
/// When the API server refuses.
pub(crate) async fn replace_raw(path: &str, object: &Value) -> anyhow::Result<()> {
    let body = object.to_string();
    run_within(LIMIT, &["replace", "--raw", path, "-f", "-"], &body)
        .await
        .map(drop)
}

/// Replaces an object.
///
/// # Errors
/// When the API server refuses.
pub(crate) async fn replace_object(object: &Value) -> anyhow::Result<()> {
    let body = object.to_string();
    run_within(LIMIT, &["replace", "-f", "-"], &body).await.map(drop)
}

/// Lists the names of a workload's running pods, without terminating ones.
///
/// # Errors
/// When the cluster does not answer.
pub(crate) async fn list_running_pods(workload: &str) -> anyhow::Result<Vec<String>> {
    let label = format!("app.kubernetes.io/name={workload}");
    let list = get_json(&["-n", INSIDE, "pods", "-l", &label]).await?;
    Ok(running_pods(&list))
}

fn running_pods(list: &Value) -> Vec<String> {
    let pods = list["items"].as_array().into_iter().flatten();
    // A terminating pod keeps the phase `Running` until its end.
    let running = pods
        .filter(|pod| pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null());
    let names = running.filter_map(|pod| pod["metadata"]["name"].as_str());
    names.map(str::to_owned).collect()
}

/// Returns the name of a workload's last running pod.
///
/// # Errors
/// When no pod of the workload runs.
pub(crate) async fn last_pod(workload: &str) -> anyhow::Result<String> {
    let pod = list_running_pods(workload).await?.pop();
    pod.with_context(|| format!("no pod of {workload} runs"))
}

/// Lists the running pods that are not ready.
///
/// # Errors
/// When the cluster does not answer.
pub(crate) async fn find_unready_pods() -> anyhow::Result<Vec<String>> {
    Ok(list_unready(&get_json(&["-n", INSIDE, "pods"]).await?))
}

fn list_unready(list: &Value) -> Vec<String> {
    let ready = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    let running = running_pods(list);
    let pods = list["items"].as_array().into_iter().flatten();
    let names = pods
        .filter(|pod| !ready(pod))
        .filter_map(|pod| pod["metadata"]["name"].as_str());
    names
        .filter(|name| running.iter().any(|found| found == name))
        .map(str::to_owned)
        .collect()
}

/// Sums the container restarts of all pods.
///
/// # Errors
/// When the cluster does not answer.
pub(crate) async fn count_restarts() -> anyhow::Result<u64> {
    let list = get_json(&["-n", INSIDE, "pods"]).await?;
    let pods = list["items"].as_array().into_iter().flatten();
    let containers = pods.flat_map(|pod| {
        pod["status"]["containerStatuses"]
            .as_array()
            .into_iter()
            .flatten()
    });
    Ok(containers
        .filter_map(|container| container["restartCount"].as_u64())
        .sum())
}

/// Waits until every workload has its replicas and returns the duration.
///
/// # Errors
/// When a workload does not become ready in time.
pub(crate) async fn wait_until_ready() -> anyhow::Result<Duration> {
    let start = Instant::now();
    for workload in WORKLOADS {
        let timeout = format!("--timeout={}s", READY.as_secs());
        run_inside(
            READY + LIMIT,
            &["rollout", "status", workload, "--watch", &timeout],
        )
        .await?;
    }
    Ok(start.elapsed())
}

/// Removes both namespaces with all their objects.
///
/// # Errors
/// When the namespaces still exist after five minutes.
pub(crate) async fn remove_namespaces() -> anyhow::Result<()> {
    let timeout = format!("--timeout={}s", GONE.as_secs());
    let arguments = [
        "delete",
        "namespace",
        INSIDE,
        OUTSIDE,
        "--ignore-not-found",
        &timeout,
    ];
    run_within(GONE + LIMIT, &arguments, "").await.map(drop)
}

async fn run_within(limit: Duration, arguments: &[&str], input: &str) -> anyhow::Result<String> {
    let said = arguments.join(" ");
    let call = async {
        let mut child = Command::new("kubectl")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("kubectl")?;
        let mut stdin = child.stdin.take().context("kubectl's input")?;
        stdin.write_all(input.as_bytes()).await?;
        drop(stdin);
        let output = child.wait_with_output().await?;
        anyhow::ensure!(
            output.status.success(),
            "kubectl {said}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8(output.stdout)?)
    };
    timeout(limit, call)
        .await
        .with_context(|| format!("kubectl {said}: not within {} s", limit.as_secs()))?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_that_end_count_neither_way() {
        let pod = |name: &str, phase: &str, ready: &str| json!({"metadata": {"name": name}, "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}});
        let mut ending = pod("ending", "Running", "False");
        ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        let list = json!({"items": [
            pod("well", "Running", "True"),
            pod("unready", "Running", "False"),
            pod("pending", "Pending", "False"),
            ending,
        ]});
        assert_eq!(running_pods(&list), ["well", "unready"]);
        assert_eq!(list_unready(&list), ["unready"]);
    }
}

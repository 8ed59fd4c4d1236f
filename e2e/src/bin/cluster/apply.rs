//! Applies an overlay with `kubectl` and waits until everything is ready.

use std::{path::Path, time::Duration};

use anyhow::Context;
use tokio::{process::Command, time::Instant};

/// For the slowest: NATS forms its cluster, images are unpacked.
const READY_LIMIT: &str = "--timeout=300s";

/// Gives the base URL of ingest and how long it took.
///
/// # Errors
/// When `kubectl` fails, or something does not become ready.
pub(crate) async fn apply(folder: &Path) -> anyhow::Result<(String, Duration)> {
    let folder = folder.display().to_string();
    let start = Instant::now();
    // The namespace first, for the Secrets that the pods wait for.
    kubectl(&["apply", "-f", "k8s/base/namespace.yaml"]).await?;
    kubectl(&["apply", "-f", &format!("{folder}/secrets.json")]).await?;
    kubectl(&["apply", "-k", &folder]).await?;
    for workload in [
        "statefulset/nats",
        "deployment/redis",
        "deployment/reporter",
        "deployment/ingest",
        "deployment/planner",
        "deployment/egress",
        "deployment/executor",
    ] {
        kubectl(&["-n", "journeyman", "rollout", "status", workload, READY_LIMIT]).await?;
    }
    let ready = start.elapsed();
    let address = kubectl(&[
        "-n",
        "journeyman",
        "get",
        "service",
        "ingest",
        "-o",
        "jsonpath={.spec.clusterIP}",
    ]);
    Ok((format!("http://{}:7401", address.await?), ready))
}

async fn kubectl(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("kubectl")
        .args(arguments)
        .kill_on_drop(true)
        .output();
    let output = output.await.context("kubectl")?;
    anyhow::ensure!(
        output.status.success(),
        "kubectl {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8(output.stdout)?)
}

//! State of the streams from the monitoring port of the NATS servers, which only a port-forward reaches.

use std::{process::Stdio, time::Duration};

use anyhow::Context;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    time::timeout,
};

use crate::cluster_test::{kubectl, names::INSIDE};

/// Time limit of the connection to a server and its answer.
const LIMIT: Duration = Duration::from_secs(15);
/// Monitoring port of a NATS server.
const MONITOR_PORT: u16 = 8222;
/// Streams of webhooks and of objects.
const DELIVERIES: &str = "DELIVERIES";
const OBJECTS: &str = "OBJ_objects";

/// State of the streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamReport {
    /// Number of webhooks ever stored.
    pub(crate) deliveries: u64,
    /// Bytes of all streams on one server.
    pub(crate) bytes: u64,
    /// Bytes of the objects.
    pub(crate) object_bytes: u64,
    /// Byte limit of the objects; 0 means unlimited.
    pub(crate) object_limit: u64,
}

impl StreamReport {
    fn of(report: &Value) -> Self {
        let mut found = Self::default();
        let accounts = report["account_details"].as_array().into_iter().flatten();
        let streams = accounts.flat_map(|account| account["stream_detail"].as_array().into_iter().flatten());
        for stream in streams {
            let state = |name: &str| stream["state"][name].as_u64().unwrap_or_default();
            found.bytes += state("bytes");
            // `last_seq` counts every message ever stored, including consumed ones.
            match stream["name"].as_str() {
                Some(DELIVERIES) => found.deliveries = state("last_seq"),
                Some(OBJECTS) => {
                    found.object_bytes = state("bytes");
                    found.object_limit = stream["config"]["max_bytes"].as_u64().unwrap_or_default();
                }
                _ => {}
            }
        }
        found
    }

    /// Selects the newer report. A follower may lag behind the leader.
    fn newest(self, other: Self) -> Self {
        if self.deliveries < other.deliveries {
            other
        } else {
            self
        }
    }
}

/// Reads the reports of all servers and returns the newest.
///
/// # Errors
/// When no server answers.
pub(crate) async fn report_streams() -> anyhow::Result<StreamReport> {
    let mut newest: Option<StreamReport> = None;
    let mut failed = None;
    for pod in kubectl::list_running_pods("nats").await? {
        match timeout(LIMIT, report_of(&pod)).await {
            Ok(Ok(report)) => newest = Some(newest.unwrap_or(report).newest(report)),
            Ok(Err(error)) => failed = Some(error),
            Err(_) => failed = Some(anyhow::anyhow!("{pod} does not answer")),
        }
    }
    match (newest, failed) {
        (Some(report), _) => Ok(report),
        (None, Some(error)) => Err(error.context("no NATS server reports its streams")),
        (None, None) => anyhow::bail!("no NATS server runs"),
    }
}

async fn report_of(pod: &str) -> anyhow::Result<StreamReport> {
    let mut forward = Command::new("kubectl")
        .args(["-n", INSIDE, "port-forward", &format!("pod/{pod}")])
        // An empty local port lets `kubectl` choose a free one.
        .arg(format!(":{MONITOR_PORT}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .context("kubectl port-forward")?;
    let output = forward.stdout.take().context("kubectl's output")?;
    // The pipe stays open: `kubectl` ends if it cannot print its next line.
    let mut lines = BufReader::new(output).lines();
    let first = lines.next_line().await?;
    let address = first.as_deref().and_then(forwarded_address);
    let address = address.with_context(|| format!("kubectl port-forward: {first:?}"))?;
    let client = reqwest::Client::builder().no_proxy().build()?;
    let url = format!("http://{address}/jsz?accounts=true&streams=true&config=true");
    let answer = client.get(url).send().await?.error_for_status()?.text().await?;
    let report = serde_json::from_str(&answer).context("the report of a NATS server")?;
    forward.kill().await?;
    Ok(StreamReport::of(&report))
}

/// Returns the address in `Forwarding from 127.0.0.1:40000 -> 8222`.
fn forwarded_address(line: &str) -> Option<&str> {
    line.strip_prefix("Forwarding from ")?.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn report_finds_webhooks_objects_sum() {
        let report = json!({"account_details": [{"stream_detail": [
            {"name": "DELIVERIES", "state": {"bytes": 10, "last_seq": 7}, "config": {"max_bytes": -1}},
            {"name": "OBJ_objects", "state": {"bytes": 100, "last_seq": 3}, "config": {"max_bytes": 500}},
            {"name": "JOURNAL", "state": {"bytes": 1, "last_seq": 9}, "config": {"max_bytes": -1}},
        ]}]});
        let expected = StreamReport {
            deliveries: 7,
            bytes: 111,
            object_bytes: 100,
            object_limit: 500,
        };
        assert_eq!(StreamReport::of(&report), expected);
    }

    #[test]
    fn report_of_following_server_counts_less() {
        let report = |deliveries| StreamReport {
            deliveries,
            ..StreamReport::default()
        };
        assert_eq!(report(3).newest(report(5)), report(5));
        assert_eq!(report(5).newest(report(3)), report(5));
    }

    #[test]
    fn forwarded_address_stands_before_arrow() {
        let line = "Forwarding from 127.0.0.1:40123 -> 8222";
        assert_eq!(forwarded_address(line), Some("127.0.0.1:40123"));
        assert_eq!(forwarded_address("error: no pod"), None);
    }
}

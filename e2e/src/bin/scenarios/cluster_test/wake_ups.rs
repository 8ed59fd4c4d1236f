//! Lost wake-ups. A ticket without its token waits until a sweep of ingest finds it, which a round notices
//! only as a longer duration.
//!
//! Ingest logs each repair. Its pods may be replaced during a round, so their logs are followed while they
//! run.

use std::{
    collections::{BTreeSet, HashSet},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep},
};

use crate::cluster_test::{kubectl, names::INSIDE};

/// Log message of ingest's sweeper.
const MESSAGE: &str = "ticket had no wake-up";
/// Interval between two searches for new pods.
const TICK: Duration = Duration::from_secs(2);
/// Assumed clock difference between the nodes and this host, in seconds.
const CLOCKS: u64 = 2;

/// Log lines that match the message.
type LogLines = Arc<Mutex<BTreeSet<String>>>;

/// Follows the logs of all ingest pods until it ends or is dropped.
pub(crate) struct WakeUpWatch {
    found: LogLines,
    task: JoinHandle<()>,
}

impl WakeUpWatch {
    /// Starts to follow the logs from now on.
    pub(crate) fn start() -> Self {
        let found = LogLines::default();
        let task = tokio::spawn(follow_all(Arc::clone(&found), Instant::now()));
        Self { found, task }
    }

    /// Returns the tickets whose wake-up a sweep repaired, each with the log's name.
    pub(crate) fn end(self) -> Vec<String> {
        let lines = self.found.lock();
        lines.iter().map(|line| describe_line(line)).collect()
    }
}

impl Drop for WakeUpWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow_all(found: LogLines, start: Instant) {
    let mut followers = JoinSet::new();
    let mut followed = HashSet::new();
    loop {
        // A failed call is repeated with the next pass.
        for pod in kubectl::list_running_pods("ingest").await.unwrap_or_default() {
            if followed.insert(pod.clone()) {
                followers.spawn(follow_pod(pod, Arc::clone(&found), start));
            }
        }
        // A connection to the log of a running pod may break. The next pass opens it again, and equal lines
        // count once.
        while let Some(ended) = followers.try_join_next() {
            if let Ok(pod) = ended {
                followed.remove(&pod);
            }
        }
        sleep(TICK).await;
    }
}

async fn follow_pod(pod: String, found: LogLines, start: Instant) -> String {
    let since = format!("--since={}s", start.elapsed().as_secs() + CLOCKS);
    let child = Command::new("kubectl")
        .args(["-n", INSIDE, "logs", "--follow", &since, &pod])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    if let Ok(mut child) = child
        && let Some(output) = child.stdout.take()
    {
        let mut lines = BufReader::new(output).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if line.contains(MESSAGE) {
                found.lock().insert(line);
            }
        }
    }
    pod
}

/// Returns ticket and log name of a line, or the whole line if it does not parse.
fn describe_line(line: &str) -> String {
    let parsed: Value = serde_json::from_str(line).unwrap_or_default();
    let field = |name: &str| {
        let nested = parsed["fields"][name].as_str();
        nested.or_else(|| parsed[name].as_str())
    };
    match (field("ticket"), field("log")) {
        (Some(ticket), Some(log)) => format!("{ticket} ({log})"),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_names_ticket_with_log() {
        let nested =
            r#"{"fields":{"message":"ticket had no wake-up","ticket":"jira:ENG-1","log":"triggers"}}"#;
        let flat = r#"{"message":"ticket had no wake-up","ticket":"jira:ENG-1","log":"triggers"}"#;
        for line in [nested, flat] {
            assert_eq!(describe_line(line), "jira:ENG-1 (triggers)");
        }
        assert_eq!(describe_line("ticket had no wake-up"), "ticket had no wake-up");
    }
}

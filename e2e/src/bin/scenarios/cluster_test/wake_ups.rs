//! Wake-ups that were lost: a ticket whose token is gone stands still until a sweep of ingest finds it, which a round sees as nothing
//! but a longer wall time. Ingest logs each, and its pods may be replaced during a round, so their logs are followed while they live.

use std::{
    collections::{BTreeSet, HashSet},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep},
};

use crate::cluster_test::{kubectl, names::INSIDE};

/// The log line of ingest's sweeper.
const MESSAGE: &str = "ticket had no wake-up";
/// Between two looks for new pods.
const TICK: Duration = Duration::from_secs(2);
/// The clocks of the nodes may differ by so much from that of this host.
const CLOCKS: u64 = 2;

/// Lines that were found.
type LogLines = Arc<Mutex<BTreeSet<String>>>;

/// Follows the logs of every ingest until it is ended or dropped.
pub(crate) struct WakeUpWatch {
    found: LogLines,
    task: JoinHandle<()>,
}

impl WakeUpWatch {
    /// From now on.
    pub(crate) fn start() -> Self {
        let found = LogLines::default();
        let task = tokio::spawn(follow_all(Arc::clone(&found), Instant::now()));
        Self { found, task }
    }

    /// The tickets whose wake-up a sweep had to repair, each with its log.
    pub(crate) fn end(self) -> Vec<String> {
        let lines = self.found.lock().unwrap_or_else(PoisonError::into_inner);
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
        for pod in kubectl::list_running_pods("ingest").await.unwrap_or_default() {
            if followed.insert(pod.clone()) {
                followers.spawn(follow_pod(pod, Arc::clone(&found), start));
            }
        }
        // A connection to the log of a pod that still runs may break: the next look begins again, and a line counts once.
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
                found.lock().unwrap_or_else(PoisonError::into_inner).insert(line);
            }
        }
    }
    pod
}

/// Ticket and log of a line, or the line.
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

//! A ticket that crashes the whole process, as a single-machine setup permits, comes to an end by itself.

use std::{
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use domain::{RunStatus, TicketKey, TicketRow};
use e2e::{ProviderDialect, StandInVendors};
use queue::{KeyValueBucket, Queue};
use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;
use testkit::{JiraOptions, NatsServer, RedisServer, ScriptStep, fixture};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin, Command},
};

// Time limit far above the duration, for loaded machines.
const PATIENCE: Duration = Duration::from_secs(120);
const EXIT_WAIT: Duration = Duration::from_millis(50);

/// Ticket, external services, and the data that survive a crash of the process.
struct Stage {
    vendors: StandInVendors,
    environment: Vec<(String, String)>,
    nats: NatsServer,
    key: String,
    folder: TempDir,
    _redis: RedisServer,
}

impl Stage {
    async fn start(script: Vec<ScriptStep>) -> Self {
        let folder = TempDir::new().unwrap();
        let nats = NatsServer::start().await.unwrap();
        let redis = RedisServer::start().await.unwrap();
        let vendors = Box::pin(StandInVendors::start(JiraOptions::default(), script)).await;
        let vendors = vendors.unwrap();
        let rules = folder.path().join("rules");
        std::fs::create_dir_all(&rules).unwrap();
        let text = format!(
            "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: {}\n",
            fixture::PROJECT
        );
        std::fs::write(rules.join("shop.yaml"), text).unwrap();
        let outside = vendors.outside();
        let mut environment = outside.environment(ProviderDialect::Anthropic, &rules);
        let mut set = |key: &str, value: String| environment.push((format!("JOURNEYMAN__{key}"), value));
        set("NATS__URL", nats.url());
        // Short, so that the next process gets the token soon, but longer than the pauses of a loaded machine: a lease
        // that is lost without a crash would count as another takeover.
        set("NATS__ACK_WAIT_MS", "3000".to_owned());
        set("REDIS__URL", redis.url());
        set("REDIS__TTL_MS", "2000".to_owned());
        set("INGEST__POLL_INTERVAL_S", "1".to_owned());
        for section in ["INGEST", "PLANNER", "EXECUTOR", "REPORTER", "EGRESS"] {
            set(
                &format!("{section}__LISTEN"),
                format!("127.0.0.1:{}", servers::free_port().unwrap()),
            );
        }
        let key = vendors.file_ticket();
        vendors.ask_for_work(&key).unwrap();
        Self {
            vendors,
            environment,
            nats,
            key,
            folder,
            _redis: redis,
        }
    }

    /// Starts the five services in one process that aborts at a failpoint, or exits when the pipe is closed.
    async fn services(&self, point: &str) -> (Child, ChildStdin) {
        let data = self.folder.path().join("data");
        std::fs::create_dir_all(&data).unwrap();
        let mut child = Command::new(e2e::find_binary("scenarios").unwrap())
            .args(["crash-matrix", "services", "--arm", point, "--data"])
            .arg(&data)
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(open_log(self.folder.path()))
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let settings = format!("{}\n", serde_json::to_string(&self.environment).unwrap());
        let mut input = child.stdin.take().unwrap();
        input.write_all(settings.as_bytes()).await.unwrap();
        (child, input)
    }

    async fn queue(&self) -> Queue {
        let settings = queue::Settings {
            url: self.nats.url(),
            ..queue::Settings::default()
        };
        Queue::connect(&settings, "test").await.unwrap()
    }

    /// Restarts the process after each exit until the ticket is as wanted, and returns the number of exits.
    async fn started_again_until(&self, point: &str, is_done: impl Fn(&TicketRow) -> bool) -> u32 {
        let queue = self.queue().await;
        let ticket = TicketKey::jira(&self.key).unwrap().to_string();
        let ((mut services, mut input), mut deaths) = (self.services(point).await, 0);
        let end = tokio::time::Instant::now() + PATIENCE;
        loop {
            let now = tokio::time::Instant::now();
            assert!(now < end, "no end, {deaths} deaths: {}", self.log_end());
            if let Ok(status) = tokio::time::timeout(EXIT_WAIT, services.wait()).await {
                let status = status.unwrap();
                assert!(
                    was_aborted(status),
                    "{status}, {deaths} deaths: {}",
                    self.log_end()
                );
                deaths += 1;
                (services, input) = self.services(point).await;
            }
            let row = queue
                .table::<TicketRow>(KeyValueBucket::Tickets)
                .get(&ticket)
                .await;
            if let Ok(Some((row, _))) = row
                && is_done(&row)
            {
                drop(input);
                let status = services.wait().await.unwrap();
                assert!(status.success(), "{status}, {deaths} deaths: {}", self.log_end());
                return deaths;
            }
        }
    }

    /// Returns the last lines of the services' log.
    fn log_end(&self) -> String {
        let log = std::fs::read_to_string(self.folder.path().join("services.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

fn open_log(folder: &Path) -> std::fs::File {
    let mut options = std::fs::File::options();
    options
        .create(true)
        .append(true)
        .open(folder.join("services.log"))
        .unwrap()
}

fn was_aborted(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::ABORT.as_raw())
}

/// Returns the duration of this number of crashes with default settings and immediate restarts.
fn by_default(deaths: u32) -> Duration {
    Duration::from_millis(queue::Settings::default().ack_wait_ms) * deaths
}

#[tokio::test(flavor = "multi_thread")]
async fn crashing_tool_call_ends_as_error() {
    let script = vec![
        ScriptStep::call("run_command", json!({ "command": "true" })),
        ScriptStep::reply("It cannot be run here.").expecting("stopped twice while this call ran"),
        ScriptStep::reply("It cannot be run here."),
        ScriptStep::reply("It cannot be run here."),
    ];
    let stage = Stage::start(script).await;
    let is_over = |row: &TicketRow| {
        row.runs
            .iter()
            .any(|run| matches!(run.status, RunStatus::Finished { .. }))
    };
    let is_commented = || {
        let comments = stage.vendors.jira.comments(&stage.key);
        comments
            .iter()
            .any(|comment| comment.text.contains("cannot be run here"))
    };
    let deaths = stage
        .started_again_until("executor.command.run/before#1", |row| {
            // The reporter updates the ticket a moment after the run's end.
            is_over(row) && row.pending.is_empty() && is_commented()
        })
        .await;
    assert_eq!(deaths, 2);
    assert!(by_default(deaths) < Duration::from_secs(60));
    // One tool call, and text alone until the reminders are exhausted.
    assert_eq!(stage.vendors.model.calls().len(), 4, "no reply is paid for twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn crashing_ticket_is_quarantined_within_minute() {
    let stage = Stage::start(vec![ScriptStep::reply("Never heard.")]).await;
    let deaths = stage
        .started_again_until("planner.model.call/before#1", |row| row.quarantined.is_some())
        .await;
    assert!((3..=6).contains(&deaths), "{deaths} deaths");
    assert!(by_default(deaths) < Duration::from_secs(60));
    assert_eq!(stage.vendors.model.calls().len(), 0);
}

/// Five crashes of the reporter at one status change, after which the ticket is informed. Each crash also
/// ends the planner, which must not count against the ticket: its run continues to its end.
#[tokio::test(flavor = "multi_thread")]
async fn report_is_refused_after_five_crashes() {
    let script = vec![
        ScriptStep::reply("It cannot be run here."),
        ScriptStep::reply("It cannot be run here."),
        ScriptStep::reply("It cannot be run here."),
    ];
    let stage = Stage::start(script).await;
    let count_comments = |text: &str| {
        let comments = stage.vendors.jira.comments(&stage.key);
        comments
            .iter()
            .filter(|comment| comment.text.contains(text))
            .count()
    };
    let refusal = "failed to handle a report about this ticket five times and has set it aside";
    let is_over = |row: &TicketRow| {
        row.pending.is_empty()
            && row
                .runs
                .iter()
                .any(|run| matches!(run.status, RunStatus::Finished { .. }))
    };
    let deaths = stage
        .started_again_until("reporter.transition/before#1", |row| {
            assert_eq!(row.quarantined, None);
            is_over(row) && count_comments(refusal) > 0 && count_comments("cannot be run here") > 0
        })
        .await;
    assert_eq!(deaths, 5);
    assert_eq!(count_comments(refusal), 1);
    let letters = stage.queue().await.dead_letters().list(10).await.unwrap();
    let reasons: Vec<&str> = letters.iter().map(|(_, letter)| letter.reason.as_str()).collect();
    let [reason] = reasons.as_slice() else {
        panic!("one dead letter is wanted: {reasons:?}");
    };
    assert!(
        reason.contains("stopped unexpectedly at each of five attempts"),
        "{reason}"
    );
}

//! Complete planner with real NATS, Redis and gRPC; executor, model and reporter are stand-ins.

mod budgets;
mod command_servers;
mod executor;
mod lanes;
mod pool;
mod records;
mod slots;
mod snapshots;
mod spans;
mod takeover;

use std::time::Duration;

use domain::{
    Fact, Job, OutboundAction, OutboundOutcome, OutboundReceipt, OutboundRequest, OutboundSettled,
    PullRequestEnd, PullRequestEvent, PullRequestRef, RunStatus, StopReason, TicketRow, Trigger,
    TriggerChannel, TriggerKey, TriggerReason, report,
};
use futures::StreamExt as _;
use queue::{KeyValueBucket, Queue};
use serde_json::json;
use testkit::{NatsServer, RedisServer, ScriptStep, ScriptedModel};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::run::tests::{build_job_request, build_ticket_key, build_trigger};
use crate::{Config, PlannerSettings};
use executor::FakeExecutor;

/// Duration of a model call that a test ends by itself.
const ENDLESS: Duration = Duration::from_secs(600);

struct World {
    ack_wait_ms: u64,
    /// Time to live of the planners' leases, longer than a loaded machine stands still.
    lease_ttl_ms: u64,
    nats: NatsServer,
    redis: RedisServer,
    model: ScriptedModel,
    executor: FakeExecutor,
    budget: crate::BudgetSettings,
    snapshots: crate::config::SnapshotSettings,
    queue: Queue,
    shutdown: CancellationToken,
    background: Vec<JoinHandle<()>>,
}

impl World {
    /// The token returns later than any outage lasts.
    async fn start(script: Vec<ScriptStep>) -> Self {
        Self::start_with(script, 60_000).await
    }

    async fn start_with(script: Vec<ScriptStep>, ack_wait_ms: u64) -> Self {
        let nats = NatsServer::start().await.unwrap();
        let redis = RedisServer::start().await.unwrap();
        let model = ScriptedModel::start(script).await.unwrap();
        let executor = FakeExecutor::start().await;
        let queue = Queue::connect(&nats_settings(&nats, ack_wait_ms), "test")
            .await
            .unwrap();
        queue.ensure_topology().await.unwrap();
        let shutdown = CancellationToken::new();
        let waker = tokio::spawn({
            let (triggers, shutdown) = (queue.triggers(), shutdown.clone());
            async move { drop(triggers.run_waker(shutdown).await) }
        });
        let reporter = tokio::spawn(settle_reports(queue.clone()));
        Self {
            ack_wait_ms,
            lease_ttl_ms: 40_000,
            nats,
            redis,
            model,
            executor,
            budget: crate::BudgetSettings::default(),
            snapshots: crate::config::SnapshotSettings::default(),
            queue,
            shutdown,
            background: vec![waker, reporter],
        }
    }

    async fn planner(&self) -> Planner {
        self.planner_that_reads(u32::MAX).await
    }

    /// Starts a planner that treats records above this format as those of a newer release.
    async fn planner_that_reads(&self, newest_format: u32) -> Planner {
        let key = grant::generate_key_pair();
        let mut model = crate::model::tests::build_model_settings("anthropic", &self.model.url());
        // No test here waits for the end of a silent call, which also a machine that stands still causes.
        (model.idle_timeout_ms, model.total_timeout_ms) = (120_000, 240_000);
        let config = Config {
            nats: queue::Settings {
                newest_format,
                ..nats_settings(&self.nats, self.ack_wait_ms)
            },
            redis: lease::Settings {
                url: self.redis.url(),
                ttl_ms: self.lease_ttl_ms,
                ..lease::Settings::default()
            },
            telemetry: bootstrap::telemetry::Settings::default(),
            tls: None,
            mcp: mcp::Settings::default(),
            planner: PlannerSettings {
                listen: ([127, 0, 0, 1], 0).into(),
                slots: 4,
                retry_base_ms: 20,
                retry_longest_ms: 900_000,
                max_retries: 5,
                wait_for_model: true,
                context_tokens: Some(100_000),
                budget: self.budget,
                snapshots: self.snapshots,
                budget_ceiling: crate::CeilingSettings::default(),
                pools: [(
                    "default".to_owned(),
                    bootstrap::settings::TextList(vec![self.executor.url.clone()]),
                )]
                .into(),
                gate_url: "http://127.0.0.1:1/git".to_owned(),
                egress_url: None,
                grant_key_id: key.id.clone(),
                grant_key: key.private_key.clone(),
            },
            model,
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = self.shutdown.child_token();
        let served = tokio::spawn(Box::pin(bootstrap::serve_app::<crate::PlannerApp>(
            config,
            listener,
            shutdown.clone(),
        )));
        Planner {
            address,
            shutdown,
            served,
        }
    }

    /// Requests the ticket's job.
    async fn ask(&self) {
        let job = TriggerReason::JobRequested(Box::new(build_job_request(Job::Implement)));
        self.trigger("changelog:1", job).await;
    }

    /// Stops a planner while the model thinks; the next planner gets quick replies.
    async fn ask_and_stop_in_the_middle(&self) {
        self.model.set_latency(ENDLESS);
        let planner = self.planner().await;
        self.ask().await;
        self.open_workspaces(1).await;
        planner.stop().await;
        self.model.set_latency(Duration::ZERO);
    }

    async fn open_workspaces(&self, count: u32) {
        let open = async || (self.executor.open() == count).then_some(());
        self.until(&format!("{count} open workspaces"), open).await;
    }

    async fn until<T>(&self, what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
        testkit::poll_until(what, Duration::from_secs(40), look)
            .await
            .unwrap()
    }

    fn rows(&self) -> queue::TypedTable<TicketRow> {
        self.queue.table(KeyValueBucket::Tickets)
    }

    async fn row(&self) -> Option<TicketRow> {
        Some(self.rows().get(&build_ticket_key().to_string()).await.ok()??.0)
    }

    async fn trigger(&self, key: &str, reason: TriggerReason) {
        let trigger = Trigger {
            key: TriggerKey::new(key),
            ..build_trigger(reason)
        };
        self.queue.triggers().append(&trigger).await.unwrap();
    }

    async fn finished(&self, runs: usize) -> TicketRow {
        let over = |run: &&domain::RunSummary| matches!(run.status, RunStatus::Finished { .. });
        self.until("the runs are finished", async || {
            let row = self.row().await?;
            (row.runs.iter().filter(over).count() == runs && row.pending.is_empty()).then_some(row)
        })
        .await
    }

    async fn stop(mut self, planner: Planner) {
        planner.stop().await;
        self.shutdown.cancel();
        for task in self.background.drain(..) {
            task.abort();
        }
    }
}

fn nats_settings(nats: &NatsServer, ack_wait_ms: u64) -> queue::Settings {
    queue::Settings {
        url: nats.url(),
        ack_wait_ms,
        ..queue::Settings::default()
    }
}

/// Running planner of a test.
struct Planner {
    address: std::net::SocketAddr,
    shutdown: CancellationToken,
    served: JoinHandle<anyhow::Result<()>>,
}

impl Planner {
    async fn stop(self) {
        self.shutdown.cancel();
        self.served.await.unwrap().unwrap();
    }
}

const COMPLETED: RunStatus = RunStatus::Finished {
    reason: StopReason::Completed,
};

/// Acts as the reporter: settles each report once.
async fn settle_reports(queue: Queue) {
    let mut cursor = 0;
    loop {
        for (sequence, report) in queue
            .reports()
            .read_after(&build_ticket_key(), cursor)
            .await
            .unwrap_or_default()
        {
            cursor = sequence;
            if let Some(settled) = build_settlement(&report) {
                drop(queue.triggers().append(&settled).await);
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn build_settlement(report: &OutboundRequest) -> Option<Trigger> {
    let receipt = match &report.request {
        OutboundAction::PushBranch(push) => OutboundReceipt::Pushed {
            branch: push.branch.clone(),
            head: push.head.clone(),
            diff: None,
        },
        OutboundAction::OpenPullRequest(report::PullRequestOpening {
            repository, branch, ..
        }) => OutboundReceipt::PullRequestOpened(PullRequestRef {
            repository: repository.clone(),
            number: 7,
            url: "https://github.example/acme/shop/pull/7".to_owned(),
            branch: branch.clone(),
        }),
        _ => OutboundReceipt::Told,
    };
    let (report, run) = (report.id.clone(), report.run.clone()?);
    let key = TriggerKey::new(format!("settled:{report}"));
    let reason = TriggerReason::ReportSettled(OutboundSettled {
        report,
        run,
        outcome: OutboundOutcome::Done(receipt),
    });
    Some(Trigger {
        key,
        source: TriggerChannel::Reporter,
        ..build_trigger(reason)
    })
}

/// Tools that an executor ran for [`script`].
const RAN: [&str; 4] = ["read_file", "edit_file", "create_branch", "commit_changes"];

fn build_fix_script() -> Vec<ScriptStep> {
    vec![
        ScriptStep::call("read_file", json!({ "path": "a" })).expecting("ENG-12"),
        ScriptStep::call("edit_file", json!({ "path": "a" })).expecting("read_file did it"),
        ScriptStep::call(
            "finish",
            json!({ "type": "fix", "title": "Correct the totals", "summary": "Totals are right again." }),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_becomes_a_pull_request() {
    let world = World::start(build_fix_script()).await;
    let planner = world.planner().await;
    world.ask().await;
    world.ask().await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    assert_eq!((row.runs[0].turns, row.pull_requests.len()), (3, 1));
    assert_eq!(world.model.calls().len(), 3);
    assert_eq!(world.model.violations(), Vec::<String>::new());
    assert_eq!(world.executor.ran(), RAN);
    world.open_workspaces(0).await;
    world
        .trigger(
            "merged:7",
            TriggerReason::from(PullRequestEvent::Merged(PullRequestEnd {
                pull_request: row.pull_requests[0].clone(),
                by: "ada".to_owned(),
                moved_to: None,
            })),
        )
        .await;
    world.finished(2).await;
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_planner_continues_stopped_run() {
    let world = World::start(build_fix_script()).await;
    world.model.set_latency(Duration::from_millis(150));
    let planner = world.planner().await;
    world.ask().await;
    let two_replies = async || (world.model.calls().len() >= 2).then_some(());
    world.until("two replies", two_replies).await;
    planner.stop().await;
    let planner = world.planner().await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    assert_eq!(world.executor.ran(), RAN);
    let entries = world.queue.journal().read(&row.runs[0].id).await.unwrap();
    let replies = entries
        .iter()
        .filter(|(_, entry)| matches!(entry.fact, Fact::ModelReplied { .. }))
        .count();
    assert_eq!(replies, 3);
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_workspace_reopens_from_snapshot() {
    let world = World::start(build_fix_script()).await;
    world.executor.lose_workspace_at("commit_changes");
    let planner = world.planner().await;
    world.ask().await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    assert_eq!(world.executor.restored(), 1);
    world.stop(planner).await;
}

/// Returns the names of the only run's facts.
async fn list_fact_names(world: &World, row: &TicketRow) -> Vec<String> {
    let entries = world.queue.journal().read(&row.runs[0].id).await.unwrap();
    entries
        .iter()
        .map(|(_, entry)| entry.fact.name().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executor_killing_call_gets_error_after_two() {
    let world = World::start(build_fix_script()).await;
    world.executor.lose_workspace_whenever("edit_file");
    let planner = world.planner().await;
    world.ask().await;
    let row = world.finished(1).await;
    assert_eq!(world.executor.deaths(), 2);
    assert_eq!(row.runs[0].status, COMPLETED, "the rest of the script ran");
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tool_output_streams_without_journal_entry() {
    let world = World::start(build_fix_script()).await;
    let run = domain::RunId::new(build_ticket_key(), 1);
    let mut output = world.queue.live().follow(&run).await.unwrap();
    let planner = world.planner().await;
    world.ask().await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].id, run);
    let live_output = testkit::bound_running_time(Duration::from_secs(40), output.next()).await;
    let live_output = live_output.unwrap().unwrap();
    assert_eq!(live_output.text, "read_file prints this\n");
    let entries = world.queue.journal().read(&run).await.unwrap();
    let called = entries.iter().any(|(_, entry)| match &entry.fact {
        Fact::ToolRequested { id, .. } => *id == live_output.call,
        _ => false,
    });
    assert!(called, "{live_output:?}");
    let journal = serde_json::to_string(&entries.iter().map(|(_, entry)| entry).collect::<Vec<_>>()).unwrap();
    assert!(!journal.contains("prints this"));
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unkept_workspace_is_reported_without_repeats() {
    for (why, tries) in [
        (tonic::Status::out_of_range("the change is too large"), 1),
        // Trouble may pass, so the call runs three times; the workspace is still open.
        (tonic::Status::unavailable("permission denied"), 3),
    ] {
        let steps = vec![
            ScriptStep::call("edit_file", json!({ "path": "a" })),
            ScriptStep::call("read_file", json!({ "path": "a" })).expecting("could not be saved"),
            ScriptStep::reply("Too large."),
        ];
        let world = World::start(steps).await;
        world.executor.keep_nothing(why);
        let planner = world.planner().await;
        world.ask().await;
        let row = world.finished(1).await;
        assert_eq!(
            world.executor.ran(),
            ["edit_file", "read_file"],
            "nothing ran twice"
        );
        let facts = list_fact_names(&world, &row).await;
        assert!(
            !facts.iter().any(|fact| fact == "workspace_restored"),
            "{facts:?}"
        );
        assert_eq!(facts.iter().filter(|fact| *fact == "snapshot_failed").count(), 1);
        assert_eq!(world.executor.refused_snapshots(), tries);
        world.stop(planner).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reply_during_nats_outage_is_kept() {
    let mut world = World::start(build_fix_script()).await;
    world.model.set_latency(Duration::from_secs(2));
    let planner = world.planner().await;
    world.ask().await;
    world.until_the_model_is_asked().await;
    world.nats.kill();
    let replied = async || (world.model.calls().len() == 1).then_some(());
    world.until("the reply", replied).await;
    world.model.set_latency(Duration::ZERO);
    // Longer than the retries of one append.
    tokio::time::sleep(Duration::from_secs(22)).await;
    world.nats.restart().await.unwrap();
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    assert_eq!(world.model.calls().len(), 3, "no call was repeated");
    assert_eq!(world.model.violations(), Vec::<String>::new());
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn model_is_asked_before_request_is_stored() {
    let mut world = World::start(build_fix_script()).await;
    world.executor.hold_tools(true);
    let planner = world.planner().await;
    world.ask().await;
    let called = async || (world.executor.ran() == ["read_file"]).then_some(());
    world.until("the call of the tool", called).await;
    // The result and the next request cannot be stored before the restart.
    world.nats.kill();
    world.executor.hold_tools(false);
    let asked = async || (world.model.calls().len() == 2).then_some(());
    world.until("the second model call", asked).await;
    world.nats.restart().await.unwrap();
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    assert_eq!(world.model.calls().len(), 3, "no call was repeated");
    assert_eq!(world.model.violations(), Vec::<String>::new());
    world.stop(planner).await;
}

/// Simulates a server that is slow right after the connection, as three servers are on a loaded machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_server_at_start_ends_no_planner() {
    let mut nats = NatsServer::start().await.unwrap();
    let queue = Queue::connect(&nats_settings(&nats, 8_000), "planner")
        .await
        .unwrap();
    queue.ensure_topology().await.unwrap();
    nats.kill();
    let (shift, opened) = (CancellationToken::new(), CancellationToken::new());
    let taking = tokio::spawn({
        let (queue, shift, opened) = (queue.clone(), shift.clone(), opened.clone());
        async move {
            let take = |_| {
                opened.cancel();
                shift.cancelled()
            };
            crate::keep_taking(&queue, &shift, take).await
        }
    });
    // Longer than the limit of one request to the server.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(!taking.is_finished(), "one failure ended it");
    nats.restart().await.unwrap();
    opened.cancelled().await;
    shift.cancel();
    taking.await.unwrap().unwrap();

    nats.kill();
    let shift = CancellationToken::new();
    let taking = tokio::spawn({
        let shift = shift.clone();
        async move { crate::keep_taking(&queue, &shift, |_| std::future::ready(())).await }
    });
    shift.cancel();
    taking.await.unwrap().expect("the end of the shift ends it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_with_failing_model_retries_by_timer() {
    let world = World::start(build_fix_script()).await;
    world.model.garble_next(4);
    let planner = world.planner().await;
    world.ask().await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    // The session that waited for the retry may be the one that finishes; it clears the due time at its end.
    let is_clear = async || {
        let row = world.row().await?;
        (row.due.is_none() && row.takeovers == 0).then_some(())
    };
    world.until("no retry is due", is_clear).await;
    let entries = world.queue.journal().read(&row.runs[0].id).await.unwrap();
    let count = |name: &str| {
        entries
            .iter()
            .filter(|(_, entry)| entry.fact.name() == name)
            .count()
    };
    assert_eq!((count("retry_scheduled"), count("retried")), (2, 2));
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_switch_interrupts_and_resumes_work() {
    let world = World::start(build_fix_script()).await;
    world.model.set_latency(Duration::from_secs(4));
    let planner = world.planner().await;
    world.ask().await;
    world.open_workspaces(1).await;
    let control = world.queue.table::<domain::StopAll>(KeyValueBucket::Control);
    let record = domain::StopAll {
        by: "root".to_owned(),
        at: bootstrap::read_wall_clock(),
    };
    control.put(domain::StopAll::KEY, &record, None).await.unwrap();
    let given_back = async || {
        let row = world.row().await?;
        let entries = world.queue.journal().read(&row.runs[0].id).await.ok()?;
        let asked = entries
            .iter()
            .any(|(_, entry)| entry.fact.name() == "model_requested");
        (asked && world.model.calls().len() <= 1).then_some(())
    };
    world.until("the token is given back", given_back).await;
    world.model.set_latency(Duration::ZERO);
    control.delete(domain::StopAll::KEY).await.unwrap();
    let row = world.finished(1).await;
    assert_eq!((row.runs[0].status.clone(), row.takeovers), (COMPLETED, 0));
    world.stop(planner).await;
}

/// Takes and loses a token repeatedly, as planners that crash on the ticket do.
async fn lose_token(world: &World, times: u64) {
    let mut tokens = world
        .queue
        .triggers()
        .tokens(world.shutdown.child_token())
        .await
        .unwrap();
    for _ in 0..times {
        let token = tokens.next().await.unwrap();
        let (rows, key) = (world.rows(), build_ticket_key().to_string());
        let (mut row, revision) = rows.get(&key).await.unwrap().unwrap();
        row.takeovers += 1;
        row.fence = token.fence();
        rows.put(&key, &row, Some(revision)).await.unwrap();
        token.release().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashing_ticket_is_quarantined_until_retry() {
    let world = World::start(build_fix_script()).await;
    world.ask_and_stop_in_the_middle().await;
    lose_token(&world, 5).await;
    let planner = world.planner().await;
    let quarantined = async || world.row().await?.quarantined;
    let reason = world.until("a quarantine", quarantined).await;
    assert!(reason.contains("no progress"), "{reason}");
    let letters = world.queue.dead_letters().list(10).await.unwrap();
    assert_eq!((letters.len(), letters[0].1.what.as_str()), (1, "ticket"));
    let reports = world
        .queue
        .reports()
        .read_after(&build_ticket_key(), 0)
        .await
        .unwrap();
    let is_quarantine =
        |(_, report): &&(u64, OutboundRequest)| matches!(report.request, OutboundAction::Quarantined(_));
    assert_eq!(reports.iter().filter(is_quarantine).count(), 1);
    world.trigger("comment:9", TriggerReason::RetryRequested).await;
    let row = world.finished(1).await;
    assert_eq!(
        (row.runs[0].status.clone(), row.quarantined, row.takeovers),
        (COMPLETED, None, 0)
    );
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_quarantine_has_its_own_notice() {
    let world = World::start(build_fix_script()).await;
    world.ask_and_stop_in_the_middle().await;
    for _ in 0..2 {
        lose_token(&world, 5).await;
        let planner = world.planner().await;
        let quarantined = async || world.row().await?.quarantined;
        world.until("a quarantine", quarantined).await;
        planner.stop().await;
        world.trigger("comment:9", TriggerReason::RetryRequested).await;
        // A planner ends the quarantine, and crashes before it saves the fold of the retry.
        let (rows, key) = (world.rows(), build_ticket_key().to_string());
        let (mut row, revision) = rows.get(&key).await.unwrap().unwrap();
        (row.quarantined, row.takeovers) = (None, 0);
        rows.put(&key, &row, Some(revision)).await.unwrap();
    }
    let log = world.queue.reports();
    let reports = log.read_after(&build_ticket_key(), 0).await.unwrap();
    let is_quarantine =
        |(_, report): &&(u64, OutboundRequest)| matches!(report.request, OutboundAction::Quarantined(_));
    assert_eq!(reports.iter().filter(is_quarantine).count(), 2);
    world.shutdown.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_cuts_the_model_call() {
    let world = World::start(build_fix_script()).await;
    world.model.set_latency(ENDLESS);
    let planner = world.planner().await;
    world.ask().await;
    world.open_workspaces(1).await;
    world
        .trigger("comment:9", TriggerReason::StopRequested { run: None })
        .await;
    let row = world.finished(1).await;
    assert_eq!(
        row.runs[0].status,
        RunStatus::Finished {
            reason: StopReason::Stopped { by: "ada".to_owned() }
        }
    );
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inspection_runs_during_search_for_checks() {
    let world = World::start(build_fix_script()).await;
    // One after the other would never end.
    world.executor.search_until_inspected();
    let planner = world.planner().await;
    world.ask().await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    assert_eq!(world.executor.inspections(), 1);
    let facts = list_fact_names(&world, &row).await;
    let found = facts.iter().position(|name| name == "checks_found").unwrap();
    assert_eq!(facts[found + 1], "change_inspected", "{facts:?}");
    let is_either = |name: &&String| ["checks_found", "change_inspected"].contains(&name.as_str());
    assert_eq!(facts.iter().filter(is_either).count(), 2);
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn search_before_work_leaves_inspection_to_proof() {
    let world = World::start(build_fix_script()).await;
    let planner = world.planner().await;
    let mut request = build_job_request(Job::Implement);
    request.rules.agent.base_checks = domain::BaseCheckRule::WhenKnown;
    let job = TriggerReason::JobRequested(Box::new(request));
    world.trigger("changelog:1", job).await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    assert_eq!(world.executor.inspections(), 1);
    let facts = list_fact_names(&world, &row).await;
    let place = |wanted: &str| facts.iter().position(|name| name == wanted).unwrap();
    let last_reply = facts.iter().rposition(|name| name == "model_replied").unwrap();
    assert!(place("checks_found") < place("model_requested"), "{facts:?}");
    assert!(place("change_inspected") > last_reply, "{facts:?}");
    world.stop(planner).await;
}

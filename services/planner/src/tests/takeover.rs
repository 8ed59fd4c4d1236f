//! Duration of a planner's hold on a ticket, its handover to another, and work without Redis.

use super::*;

impl World {
    async fn ready(&self, planner: &Planner, wanted: &str) {
        bootstrap::install_tls_provider();
        let url = format!("http://{}/readyz", planner.address);
        let says = async || {
            let answer = reqwest::get(&url).await.ok()?;
            let text = format!("{} {}", answer.status().as_u16(), answer.text().await.ok()?);
            text.contains(wanted).then_some(())
        };
        self.until(wanted, says).await;
    }

    /// Ends the stand-in of the reporter, which was started last.
    fn stop_reporter(&mut self) {
        self.background.pop().unwrap().abort();
    }

    fn start_reporter(&mut self) {
        let reporter = tokio::spawn(settle_reports(self.queue.clone()));
        self.background.push(reporter);
    }

    async fn until_it_waits_for_a_report(&self) {
        let waits = RunStatus::Parked {
            waits_for: domain::WaitCondition::Report,
        };
        let waiting = async || (self.row().await?.runs.first()?.status == waits).then_some(());
        self.until("the run waits for a report", waiting).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_complete_while_redis_is_down() {
    let mut world = World::start(build_fix_script()).await;
    world.lease_ttl_ms = 1_500;
    // Longer in total than the lease lasts.
    world.model.set_latency(Duration::from_millis(400));
    let planner = world.planner().await;
    world.ask().await;
    world.until_the_model_is_asked().await;
    world.redis.kill();
    let row = world.finished(1).await;
    assert_eq!((row.runs[0].status.clone(), row.takeovers), (COMPLETED, 0));
    assert_eq!(world.model.calls().len(), 3, "nothing was done twice");
    assert_eq!(world.executor.ran(), super::RAN);
    planner.stop().await;
    let planner = world.planner().await;
    let pull_request = row.pull_requests[0].clone();
    let by = "ada".to_owned();
    world
        .trigger(
            "merged:7",
            TriggerReason::from(domain::PullRequestEvent::Merged(domain::PullRequestEnd {
                pull_request,
                by,
                moved_to: None,
            })),
        )
        .await;
    assert_eq!(world.finished(2).await.runs[1].status, COMPLETED);
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_needs_nats_but_not_redis() {
    let mut world = World::start(build_fix_script()).await;
    let planner = world.planner().await;
    world.ready(&planner, "200 ready").await;
    world.redis.kill();
    world.ready(&planner, "the work continues without leases").await;
    world.nats.kill();
    world.ready(&planner, "503 not ready").await;
    world.nats.restart().await.unwrap();
    world.redis.restart().await.unwrap();
    world.ready(&planner, "200 ready\n").await;
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn busy_planner_keeps_ticket_beyond_ack_wait() {
    let world = World::start_with(build_fix_script(), 2_000).await;
    world.model.set_latency(Duration::from_secs(4));
    let planner = world.planner().await;
    world.ask().await;
    let replied = async || (world.model.calls().len() == 2).then_some(());
    world.until("two replies", replied).await;
    world.model.set_latency(Duration::ZERO);
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    let entries = world.queue.journal().read(&row.runs[0].id).await.unwrap();
    let fences: std::collections::BTreeSet<_> = entries
        .iter()
        .take_while(|(_, entry)| entry.fact.name() != "parked")
        .map(|(_, entry)| entry.fence)
        .collect();
    assert_eq!(fences.len(), 1, "no other planner received the token");
    assert_eq!(world.model.calls().len(), 3);
    world.stop(planner).await;
}

/// With a minute instead of seconds, the wait for the end would time out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_planner_loses_ticket_within_seconds() {
    let ack_wait_ms = queue::Settings::default().ack_wait_ms;
    assert!(lease::Settings::default().ttl_ms < ack_wait_ms);
    let world = World::start_with(build_fix_script(), ack_wait_ms).await;
    world.ask().await;
    let log = world.queue.triggers();
    let mut tokens = log.tokens(world.shutdown.child_token()).await.unwrap();
    let token = tokens.next().await.unwrap();
    // A process that dies sends nothing.
    drop(token);
    let planner = world.planner().await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    world.stop(planner).await;
}

/// Starts the run of the ticket's only trigger, as a planner with this fence does it.
async fn start_run(world: &World, fence: domain::RunFence) -> domain::RunId {
    let log = world.queue.triggers();
    let (sequence, trigger) = log.read_after(&build_ticket_key(), 0).await.unwrap().remove(0);
    let run = domain::RunId::new(build_ticket_key(), sequence);
    let entry = domain::JournalEntry {
        position: 0,
        nonce: queue::create_nonce(),
        fence,
        at: bootstrap::read_wall_clock(),
        fact: Fact::RunStarted {
            trigger: Box::new(trigger),
        },
    };
    world.queue.journal().append(&run, 0, &entry).await.unwrap();
    run
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_fold_continues_started_run() {
    let world = World::start(build_fix_script()).await;
    world.ask().await;
    // A planner that ended after the start of the run saved no row.
    let run = start_run(&world, domain::RunFence::default()).await;
    let planner = world.planner().await;
    let row = world.finished(1).await;
    assert_eq!((&row.runs[0].id, &row.runs[0].status), (&run, &COMPLETED));
    let facts = list_fact_names(&world, &row).await;
    assert_eq!(facts[..2], ["run_started", "taken_over"]);
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_of_newer_planner_stays_untouched() {
    let world = World::start_with(build_fix_script(), 1_000).await;
    world.ask().await;
    let run = start_run(&world, domain::RunFence::new(u64::MAX, 1, 1)).await;
    let planner = world.planner().await;
    // The second delivery follows the end of the first session.
    let again = async || (world.row().await?.fence.stamp().delivered > 1).then_some(());
    world.until("a second delivery", again).await;
    assert_eq!(world.queue.journal().read(&run).await.unwrap().len(), 1);
    assert_eq!(world.row().await.unwrap().runs, []);
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcome_continues_session_that_waits() {
    let world = World::start(build_fix_script()).await;
    let planner = world.planner().await;
    world.ask().await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    let entries = world.queue.journal().read(&row.runs[0].id).await.unwrap();
    let has_waited = entries.iter().any(|(_, entry)| entry.fact.name() == "parked");
    assert!(has_waited, "the run has waited for reports");
    let fences: std::collections::BTreeSet<_> = entries.iter().map(|(_, entry)| entry.fence).collect();
    assert_eq!(fences.len(), 1, "the lease was taken once");
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_without_outcome_ends() {
    let mut world = World::start(build_fix_script()).await;
    world.stop_reporter();
    let planner = world.planner().await;
    world.ask().await;
    world.until_it_waits_for_a_report().await;
    let log = world.queue.triggers();
    // A token is refused as long as the session has the one before.
    let ended = async || log.rewake(&build_ticket_key()).await.unwrap().then_some(());
    world.until("the session ends", ended).await;
    world.start_reporter();
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    let facts = list_fact_names(&world, &row).await;
    assert!(
        facts.iter().any(|fact| fact == "taken_over"),
        "another session continued: {facts:?}"
    );
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_waiting_for_report_survives_shutdown() {
    let mut world = World::start(build_fix_script()).await;
    world.stop_reporter();
    let planner = world.planner().await;
    world.ask().await;
    world.until_it_waits_for_a_report().await;
    planner.stop().await;
    assert_eq!(world.row().await.unwrap().takeovers, 0, "a shutdown is no crash");
    world.start_reporter();
    let planner = world.planner().await;
    let row = world.finished(1).await;
    assert_eq!((&row.runs[0].status, row.takeovers), (&COMPLETED, 0));
    world.stop(planner).await;
}

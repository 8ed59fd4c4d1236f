//! Choice of an executor for a workspace, and calls to it.

use std::sync::Arc;

use bootstrap::span_forwarder::SpanForwarder;
use domain::{
    ConflictedBase, JobRequest, JobSubject, RunFence, SlotQueue, Timestamp,
    check::{CheckOutcome, CheckSpec, TreeKind},
};
use grant::GrantSigner;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::*;
use crate::executors::{
    CallError, ExecutorFleet, MirrorWait, OpenError, OpeningCommit, RunCaller, SeedQuery,
};
use crate::run::tests::build_commit_id;
use crate::slots::{SlotAllocator, SlotQueues};

/// Starts a client of executors at these addresses, until the guard is dropped.
fn start_executors(urls: Vec<String>) -> (Arc<ExecutorFleet>, DropGuard) {
    executors_with(urls, None)
}

/// Starts the same with a forwarder of spans.
pub(super) fn executors_with(
    urls: Vec<String>,
    forwarder: Option<SpanForwarder>,
) -> (Arc<ExecutorFleet>, DropGuard) {
    let key = grant::generate_key_pair();
    let settings = PlannerSettings {
        listen: ([127, 0, 0, 1], 0).into(),
        slots: 1,
        retry_base_ms: 20,
        retry_longest_ms: 900_000,
        max_retries: 5,
        wait_for_model: true,
        context_tokens: Some(100_000),
        budget: crate::BudgetSettings::default(),
        snapshots: crate::SnapshotSettings::default(),
        budget_ceiling: crate::CeilingSettings::default(),
        pools: [("default".to_owned(), bootstrap::settings::TextList(urls))].into(),
        gate_url: "http://127.0.0.1:1/git".to_owned(),
        egress_url: None,
        grant_key_id: key.id.clone(),
        grant_key: key.private_key.clone(),
    };
    let signer = GrantSigner::new(&key.id, &key.private_key).unwrap();
    let shutdown = CancellationToken::new();
    let executors = ExecutorFleet::start(
        settings,
        signer,
        crate::executors::ExecutorConnector::new(None).unwrap(),
        forwarder,
        &shutdown,
    );
    (executors, shutdown.drop_guard())
}

pub(super) fn build_caller(request: &JobRequest) -> RunCaller {
    RunCaller {
        run: domain::RunId::new(build_ticket_key(), 1),
        repository: request.repository.clone(),
        fence: RunFence::new(1, 2, 1),
    }
}

#[tokio::test]
async fn open_workspace_is_found_at_full_executor() {
    let (full, free) = (FakeExecutor::start().await, FakeExecutor::start().await);
    full.hold_run_in_the_last_slot(&domain::RunId::new(build_ticket_key(), 1));
    let (executors, _stopped) = start_executors(vec![free.url.clone(), full.url.clone()]);
    let request = build_job_request(Job::Implement);
    let caller = build_caller(&request);
    let opened = executors
        .open(&caller, &request, OpeningCommit::default(), None)
        .await
        .unwrap();
    assert_eq!(opened.executor, full.url);
    assert_eq!((full.open(), free.open()), (1, 0));
}

#[tokio::test]
async fn reported_base_is_requested_within_limit() {
    let executor = FakeExecutor::start().await;
    let (executors, _stopped) = start_executors(vec![executor.url.clone()]);
    let build_request = |base| {
        let pull_request = PullRequestRef {
            repository: "acme/shop".parse().unwrap(),
            number: 7,
            url: "https://github.example/acme/shop/pull/7".to_owned(),
            branch: "fix/ENG-12-totals".to_owned(),
        };
        let (head, base) = (build_commit_id('e'), build_commit_id(base));
        let conflict = ConflictedBase::new(pull_request, head, base, "main".to_owned());
        JobRequest {
            about: JobSubject::Conflict(Box::new(conflict)),
            ..build_job_request(Job::ResolveConflict)
        }
    };
    let limit = Duration::from_secs(30);
    for (base, waited, reported) in [
        ('b', Duration::ZERO, "b"),
        ('b', limit - Duration::from_millis(1), "b"),
        ('b', limit, ""),
        // GitHub reported no base.
        ('e', Duration::ZERO, ""),
    ] {
        let request = build_request(base);
        let commit = OpeningCommit::of_request(&request, waited);
        let caller = build_caller(&request);
        executors.open(&caller, &request, commit, None).await.unwrap();
        let spec = executor.last_spec();
        assert_eq!(
            (spec.base_commit, spec.reported_base, spec.merged_commit),
            (String::new(), reported.repeat(40), "e".repeat(40)),
            "{base} after {waited:?}"
        );
    }
    // A workspace that is restored stays at its base.
    let (request, base) = (build_request('b'), build_commit_id('c'));
    let (caller, commit) = (build_caller(&request), OpeningCommit::pinned(Some(&base)));
    executors.open(&caller, &request, commit, None).await.unwrap();
    let spec = executor.last_spec();
    assert_eq!(
        (spec.base_commit, spec.reported_base),
        ("c".repeat(40), String::new())
    );
}

#[tokio::test(start_paused = true)]
async fn progress_between_answers_keeps_idle_wait() {
    let (mut wait, step) = (MirrorWait::start(), Duration::from_secs(15));
    // A slow fetch of the gate shows its progress, and the base lacks the commit also after it.
    for percent in [Some(40), None, Some(80), None, Some(80)] {
        tokio::time::advance(step).await;
        wait.note(percent);
    }
    assert_eq!((wait.idle(), wait.since_progress()), (step * 2, step * 2));
}

#[tokio::test]
async fn first_clone_keeps_place_in_slot_queue() {
    let nats = NatsServer::start().await.unwrap();
    let queue = Queue::connect(&nats_settings(&nats, 60_000), "test")
        .await
        .unwrap();
    queue.ensure_topology().await.unwrap();
    let executor = FakeExecutor::start().await;
    let (executors, _stopped) = start_executors(vec![executor.url.clone()]);
    let request = build_job_request(Job::Implement);
    let caller = build_caller(&request);
    let mut both = SlotQueue::default();
    both.join(&caller.run, Timestamp::from_unix_ms(1));
    both.join(&"jira:ENG-99@9".parse().unwrap(), Timestamp::from_unix_ms(2));
    let table = queue.table::<SlotQueue>(KeyValueBucket::Slots);
    table.put("default", &both, None).await.unwrap();
    let read = async || table.get("default").await.unwrap().unwrap().0;
    let slots = SlotAllocator::new(Arc::new(SlotQueues::new(&queue)), executors);
    let mut arrival = None;
    let mut open = async || {
        let base = OpeningCommit::default();
        slots.open(&caller, &request, base, None, &mut arrival).await
    };
    executor.set_cloning(true);
    let not_ready = open().await;
    let is_clone = matches!(not_ready, Err(OpenError::NotReady { percent: Some(40) }));
    assert!(is_clone, "{not_ready:?}");
    let waiting = read().await.waiting;
    assert_eq!(
        waiting,
        both.waiting[1..],
        "the other run uses the slot meanwhile"
    );
    // The other run took the last slot, and the clone is complete.
    executor.set_cloning(false);
    executor.set_full(true);
    let full = open().await;
    assert!(matches!(full, Err(OpenError::NoSlot)), "{full:?}");
    assert_eq!(read().await, both);
}

#[tokio::test]
async fn seeds_come_from_executor_holding_workspace() {
    let executor = FakeExecutor::start().await;
    let (executors, _stopped) = start_executors(vec![executor.url.clone()]);
    let request = build_job_request(Job::Implement);
    let caller = build_caller(&request);
    let opened = executors
        .open(&caller, &request, OpeningCommit::default(), None)
        .await
        .unwrap();
    let query = SeedQuery {
        text: "The total is wrong".to_owned(),
        modules: vec!["shop".to_owned()],
        dbt: Vec::new(),
        candidates: 0,
    };
    let workspace = executors.workspace(&caller, &opened);
    let seeds = workspace.seed_context(query).await.unwrap();
    let [seed] = seeds.chunks.as_slice() else {
        panic!("{seeds:?}")
    };
    assert_eq!((seed.path.as_str(), seed.lines), ("shop/cart.py", Some((3, 9))));
    assert_eq!(seed.reason, "The total is wrong");
}

#[tokio::test]
async fn checks_run_at_executor_holding_workspace() {
    let executor = FakeExecutor::start().await;
    let (executors, _guard) = start_executors(vec![executor.url.clone()]);
    let request = build_job_request(Job::Implement);
    let caller = build_caller(&request);
    let info = executors
        .open(&caller, &request, OpeningCommit::default(), None)
        .await
        .unwrap();
    let given = ["make test".to_owned()];
    let workspace = executors.workspace(&caller, &info);
    let found = workspace.find_checks((&given, &[])).await.unwrap();
    assert_eq!(found[0].command, "make test");
    let spec = CheckSpec {
        command: found[0].command.clone(),
        directory: String::new(),
        tree: TreeKind::Base,
        again: 0,
        limit_s: Some(60),
        reports: Vec::new(),
    };
    let (sink, mut output) = tokio::sync::mpsc::channel(8);
    let id = caller.run.call(7);
    for _ in 0..2 {
        let ran = workspace.run_check(&id, &spec, &sink).await.unwrap();
        assert_eq!(
            (ran.outcome, ran.tree_kind),
            (CheckOutcome::Green, TreeKind::Base)
        );
        assert_eq!(ran.tests.unwrap().passed, 2);
    }
    assert_eq!(output.recv().await.unwrap(), b"2 passed in 0.01s\n");
    assert_eq!(executor.ran(), ["make test"], "a repeated id runs nothing");
    let change = workspace.inspect_change(String::new()).await.unwrap();
    assert_eq!((change.files, change.is_blocked()), (1, false));
    executor.lose_workspace_at("run_check");
    let lost = workspace.run_check(&id, &spec, &sink).await;
    assert!(matches!(lost, Err(CallError::WorkspaceLost)));
}

/// Relay to an executor that can swallow everything in both directions, as a lost node does.
struct SilentWay {
    url: String,
    is_silent: Arc<std::sync::atomic::AtomicBool>,
    _task: tokio_util::task::AbortOnDropHandle<()>,
}

impl SilentWay {
    async fn to(executor: &FakeExecutor) -> Self {
        let target = executor.url.trim_start_matches("http://").to_owned();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let is_silent = Arc::<std::sync::atomic::AtomicBool>::default();
        let hears = Arc::clone(&is_silent);
        let task = tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                let far = tokio::net::TcpStream::connect(&target).await.unwrap();
                let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                tokio::spawn(forward_bytes(near_in, far_out, Arc::clone(&hears)));
                tokio::spawn(forward_bytes(far_in, near_out, Arc::clone(&hears)));
            }
        });
        Self {
            url,
            is_silent,
            _task: tokio_util::task::AbortOnDropHandle::new(task),
        }
    }
}

async fn forward_bytes(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    is_silent: Arc<std::sync::atomic::AtomicBool>,
) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if !is_silent.load(std::sync::atomic::Ordering::SeqCst)
            && to.write_all(&buffer[..read]).await.is_err()
        {
            return;
        }
    }
    // A dropped half would close the other side, which a lost node does not do.
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_executor_is_left_after_one_limit() {
    let (lost, free) = (FakeExecutor::start().await, FakeExecutor::start().await);
    let way = SilentWay::to(&lost).await;
    lost.hold_run_in_the_last_slot(&domain::RunId::new(build_ticket_key(), 1));
    let (executors, _stopped) = start_executors(vec![way.url.clone(), free.url.clone()]);
    let request = build_job_request(Job::Implement);
    let caller = build_caller(&request);
    let opened = executors
        .open(&caller, &request, OpeningCommit::default(), None)
        .await
        .unwrap();
    assert_eq!(opened.executor, way.url);
    assert!(!executors.leave_if_silent(&way.url).await, "it answers");

    way.is_silent.store(true, std::sync::atomic::Ordering::SeqCst);
    let elsewhere = async {
        assert!(executors.leave_if_silent(&way.url).await);
        executors
            .open(&caller, &request, OpeningCommit::default(), None)
            .await
            .unwrap()
    };
    let elsewhere = testkit::bound_running_time(Duration::from_secs(6), elsewhere).await;
    assert_eq!(elsewhere.expect("opened in time").executor, free.url);
}

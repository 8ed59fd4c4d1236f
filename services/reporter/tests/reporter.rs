//! Tests of the whole reporter with real NATS and real git, and with fakes of GitHub and Jira.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends at its first surprise"
)]

mod approval;
mod customers;
mod faults;
mod foreign;
mod gate;
mod issues;
mod large_files;
mod leaks;
mod limits;
mod locked;
mod merges;
mod people;
mod pushes;
mod requirements;
mod rig;
mod rounds;
mod signatures;
mod threads;
mod triage;
mod unchecked;

use std::time::Duration;

use domain::{
    AnyRecord, BranchRecord, ChecksConclusion, ChecksSummary, Job, OutboundAction, OutboundId,
    OutboundOutcome, OutboundReceipt, OutboundRequest, PullRequestEnd, PullRequestEvent, PullRequestRef,
    PullRequestStatus, SkipReason, TicketKey, report,
};
use queue::{KeyValueBucket, RecordKey};
use rig::{Rig, run_git, try_git};
use secrecy::SecretString;
use serde_json::{Value, json};
use testkit::{ServiceFault, jira, poll_until};

fn build_work_started() -> OutboundAction {
    OutboundAction::WorkStarted(report::WorkStarted {
        job: Job::Implement,
        repository: "acme/shop".parse().unwrap(),
        begun: report::WorkOrigin::default(),
    })
}

fn draft_of(branch: &str) -> OutboundAction {
    OutboundAction::OpenPullRequest(report::PullRequestOpening {
        repository: "acme/shop".parse().unwrap(),
        branch: branch.to_owned(),
        base_branch: "main".to_owned(),
        title: "fix: totals (ENG-1)".to_owned(),
        body: "Rounds totals. cc @ann".to_owned(),
        description: None,
    })
}

/// Returns the text of a refusal for people.
fn read_refusal(outcome: &OutboundOutcome) -> String {
    match outcome {
        OutboundOutcome::Refused(refusal) => refusal.words(),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ticket_is_carried_to_done_only_once() {
    let mut rig = Rig::start().await;
    let push = rig
        .change("fix/ENG-1-totals", &[("cart.py", "total = 2\n")])
        .await;
    let (branch, head) = (push.branch.clone(), push.head.clone());
    let work = rig.report(2, build_work_started());
    let pushed = rig.report(4, OutboundAction::PushBranch(push));
    let opened = rig.report(6, draft_of(&branch));
    assert_eq!(
        rig.settled(&work).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );
    assert_eq!(rig.jira.status("ENG-1").as_deref(), Some("In Progress"));
    let OutboundOutcome::Done(receipt) = rig.settled(&pushed).await else {
        panic!("not pushed")
    };
    let (there, diff) = receipt.pushed_change().expect("the difference is stored");
    assert_eq!(there, head);
    let diff = rig.queue.objects().get(&diff).await.unwrap();
    let diff = String::from_utf8_lossy(&diff).into_owned();
    assert!(
        diff.starts_with("diff --git a/cart.py b/cart.py\n") && diff.contains("\n+total = 2\n"),
        "{diff}"
    );
    let OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(pull_request)) = rig.settled(&opened).await
    else {
        panic!("not opened")
    };
    let passed = OutboundAction::from(PullRequestEvent::ChecksCompleted(ChecksSummary::new(
        pull_request.clone(),
        head,
        ChecksConclusion::Success,
    )));
    let passed = rig.report(8, passed);
    assert_eq!(
        rig.settled(&passed).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );
    rig.github.merge("acme/shop", pull_request.number, "ann").unwrap();
    let merged = rig.report(
        10,
        OutboundAction::from(PullRequestEvent::Merged(PullRequestEnd {
            pull_request: pull_request.clone(),
            by: "ann".into(),
            moved_to: None,
        })),
    );
    assert_eq!(
        rig.settled(&merged).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );

    rig.deliver_everything_again(&[&work, &pushed, &opened, &passed, &merged])
        .await;

    let pull_requests = rig.github.pull_requests("acme/shop");
    assert_eq!(pull_requests.len(), 1, "{pull_requests:?}");
    assert!(pull_requests[0].body.contains("`@ann`") && pull_requests[0].body.contains("ENG-1"));
    assert!(!pull_requests[0].draft && pull_requests[0].merged);
    let history = rig.jira.status_history("ENG-1");
    assert_eq!(history, ["To Do", "In Progress", "In Review", "Done"]);
    let comments = rig.jira.comments("ENG-1");
    assert_eq!(comments.len(), 1, "{comments:?}");
    let positions =
        ["merged", "All checks passed", "Draft", "has started"].map(|words| comments[0].text.find(words));
    assert!(
        positions.iter().all(Option::is_some) && positions.is_sorted(),
        "newest first: {comments:?}"
    );
    assert_eq!(rig.jira.remote_links("ENG-1").len(), 1);
    let index = rig.queue.pull_requests();
    let indexed = index.get(&pull_request.repository, pull_request.number).await;
    let indexed = indexed.unwrap().map(|record| (record.ticket, record.status));
    assert_eq!(indexed, Some((rig.ticket.clone(), PullRequestStatus::Merged)));
    let found = rig.queue.branches().get(&pull_request.repository, &branch).await;
    let (record, _) = found.unwrap().unwrap();
    assert_eq!(
        (record.ticket, record.pull_request),
        (rig.ticket.clone(), Some(pull_request))
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn effect_with_lost_receipt_is_not_repeated() {
    let mut rig = Rig::start().await;
    let work = rig.report(2, build_work_started());
    let effect = format!("status:{}", rig.ticket);
    let writer = ::jira::JiraWriter::new(&::jira::Settings {
        base_url: rig.jira.url(),
        email: jira::WRITER_EMAIL.to_owned(),
        api_token: SecretString::from(jira::WRITER_API_TOKEN),
        ..::jira::Settings::default()
    });
    writer
        .unwrap()
        .comment(&rig.ticket, "Journeyman has started.", &effect)
        .await
        .unwrap();
    let fence = json!({ "epoch": 0, "sequence": 0, "delivered": 1 });
    let intent = parse_record(json!({
        "intent_at": bootstrap::read_wall_clock().unix_ms(), "fence": fence, "attempts": 1, "receipt": null
    }));
    rig.queue
        .table::<AnyRecord>(KeyValueBucket::Effects)
        .put(RecordKey::status(&rig.ticket), &intent, None)
        .await
        .unwrap();

    assert_eq!(
        rig.settled(&work).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );
    assert_eq!(rig.jira.comments("ENG-1").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn comment_with_lost_answer_is_not_repeated() {
    let mut rig = Rig::start().await;
    rig.jira
        .fail_next(ServiceFault::new("/comment", 1, 500).on("POST").after_effect());
    assert_eq!(
        rig.settled(&rig.report(2, build_work_started())).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );
    assert_eq!(rig.jira.comments("ENG-1").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_fence_cannot_touch_an_effect() {
    let mut rig = Rig::start().await;
    let work = rig.report(2, build_work_started());
    let newer = json!({ "epoch": 999, "sequence": 1, "delivered": 1 });
    let held = parse_record(json!({ "intent_at": null, "fence": newer, "attempts": 1, "receipt": null }));
    let table = rig.queue.table::<AnyRecord>(KeyValueBucket::Effects);
    table
        .put(
            RecordKey::effect(&rig.ticket, work.id.as_str(), "transition"),
            &held,
            None,
        )
        .await
        .unwrap();
    rig.queue.reports().append(&work).await.unwrap();
    let taken = async || table.get(RecordKey::cursor(&rig.ticket)).await.unwrap();
    poll_until("the ticket is taken", Duration::from_secs(10), taken)
        .await
        .unwrap();
    // The reporter finishes its reports in progress before it stops.
    rig.stop().await;
    assert_eq!(rig.jira.status("ENG-1").as_deref(), Some("To Do"));
    assert_eq!(rig.jira.comments("ENG-1").len(), 0);
    assert!(
        rig.queue
            .triggers()
            .read_after(&rig.ticket, 0)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn change_against_policy_is_never_pushed() {
    let mut rig = Rig::start().await;
    let push = rig
        .change("fix/ENG-1-ci", &[(".github/workflows/ci.yml", "on: push\n")])
        .await;
    let outcome = rig.settle_push(2, push).await;
    assert!(
        read_refusal(&outcome).contains(".github/workflows/ci.yml"),
        "{outcome:?}"
    );

    // The whole change and its one commit both contain it; it is reported once.
    let token = format!("t = 'ghp_{}'\n", "a1B2c3D4e5".repeat(4));
    let push = rig.change("fix/ENG-1-token", &[("settings.py", &token)]).await;
    let outcome = rig.settle_push(3, push).await;
    assert_eq!(
        read_refusal(&outcome).matches("settings.py").count(),
        1,
        "{outcome:?}"
    );

    let mut push = rig
        .change("fix/ENG-1-totals", &[("cart.py", "total = 3\n")])
        .await;
    push.branch = "fix/ENG-2-totals".to_owned();
    let outcome = rig.settle_push(4, push.clone()).await;
    assert!(read_refusal(&outcome).contains("ENG-1"), "{outcome:?}");

    push.branch = "fix/ENG-1-totals".to_owned();
    let other = BranchRecord {
        repository: push.repository.clone(),
        branch: push.branch.clone(),
        ticket: "jira:ENG-77".parse().unwrap(),
        run: "jira:ENG-77@1".parse().unwrap(),
        head: push.head.clone(),
        pull_request: None,
        signed: Vec::new(),
    };
    rig.queue.branches().put(&other, None).await.unwrap();
    let outcome = rig.settle_push(6, push).await;
    assert!(read_refusal(&outcome).contains("ENG-77"), "{outcome:?}");

    let branches: Vec<String> = rig.github.branches("acme/shop").into_keys().collect();
    assert_eq!(branches, ["main"]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn draft_with_moved_head_stays_draft() {
    let mut rig = Rig::start().await;
    let push = rig
        .change("fix/ENG-1-totals", &[("cart.py", "total = 2\n")])
        .await;
    let base = push.base.clone();
    rig.settle_push(2, push).await;
    let outcome = rig.settled(&rig.report(4, draft_of("fix/ENG-1-totals"))).await;
    let OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(pull_request)) = outcome else {
        panic!("{outcome:?}")
    };
    let request = OutboundAction::from(PullRequestEvent::ChecksCompleted(ChecksSummary::new(
        pull_request,
        base,
        ChecksConclusion::Success,
    )));
    let outcome = rig.settled(&rig.report(6, request)).await;
    assert!(read_refusal(&outcome).contains("draft"), "{outcome:?}");
    assert!(rig.github.pull_requests("acme/shop")[0].draft);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notice_is_written_or_dead_lettered() {
    let mut rig = Rig::start().await;
    let notice = |ticket: TicketKey| OutboundRequest {
        id: OutboundId::notice(&ticket, 9),
        run: None,
        ticket,
        ..rig.report(
            0,
            OutboundAction::Skipped(SkipReason::Label {
                label: "skip-dispatch".into(),
            }),
        )
    };
    rig.queue
        .reports()
        .append(&notice(rig.ticket.clone()))
        .await
        .unwrap();
    let unknown: TicketKey = "jira:ENG-999".parse().unwrap();
    rig.queue
        .reports()
        .append(&notice(unknown.clone()))
        .await
        .unwrap();

    let read_comment = async || rig.jira.comments("ENG-1").pop();
    let comment = poll_until("the ticket has a comment", Duration::from_secs(20), read_comment)
        .await
        .unwrap();
    assert!(comment.text.contains("skip-dispatch"), "{comment:?}");
    let buried = async || rig.queue.dead_letters().list(10).await.unwrap().pop();
    let (_, letter) = poll_until("a dead letter", Duration::from_secs(20), buried)
        .await
        .unwrap();
    assert_eq!((letter.what.as_str(), letter.ticket), ("report", Some(unknown)));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_checks_are_named_and_draft_stays() {
    let mut rig = Rig::start().await;
    let pull_request = PullRequestRef {
        repository: "acme/shop".parse().unwrap(),
        number: 1,
        url: "https://github.example/acme/shop/pull/1".to_owned(),
        branch: "fix/ENG-1-totals".to_owned(),
    };
    let failed = domain::FailedCheck {
        name: "test (3.11)".to_owned(),
        url: "https://ci.example/1".to_owned(),
        log_tail: String::new(),
        class: domain::FailureClass::Real,
        step: String::new(),
        command: String::new(),
        log: String::new(),
    };
    let head = "a".repeat(40).parse().unwrap();
    let request = OutboundAction::from(PullRequestEvent::ChecksCompleted(ChecksSummary {
        failed: vec![failed],
        ..ChecksSummary::new(pull_request, head, ChecksConclusion::Failure)
    }));
    assert_eq!(
        rig.settled(&rig.report(2, request)).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );
    let comments = rig.jira.comments("ENG-1");
    assert!(comments[0].text.contains("test (3.11)"), "{comments:?}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gate_serves_repository_to_grant_holder() {
    let mut rig = Rig::start().await;
    let clone = rig.clone().await;
    assert_eq!(
        std::fs::read_to_string(clone.join("cart.py")).unwrap(),
        "total = 1\n"
    );
    let url = rig.gate_url();
    let with = |token: &str| format!("http.extraHeader=Authorization: Bearer {token}");
    let good = with(&rig.grant_for("acme/shop"));
    for protocol in ["protocol.version=0", "protocol.version=2"] {
        let heads = run_git(&["-c", &good, "-c", protocol, "ls-remote", "--heads", &url]).await;
        assert!(heads.contains("refs/heads/main"), "{heads}");
    }
    let other = with(&rig.grant_for("acme/other"));
    let garbage = with("garbage");
    for (header, status) in [
        ("a.b=c", "401"),
        (garbage.as_str(), "401"),
        (other.as_str(), "403"),
    ] {
        let refused = try_git(&["-c", header, "ls-remote", &url]).await.unwrap_err();
        assert!(
            refused.contains(status) || refused.contains("could not read Username"),
            "{refused}"
        );
    }
    let here = clone.to_str().unwrap();
    let push = [
        "-C",
        here,
        "-c",
        &good,
        "push",
        "--quiet",
        "origin",
        "HEAD:refs/heads/other",
    ];
    let refused = try_git(&push).await.unwrap_err();
    assert!(refused.contains("403"), "{refused}");
    let missing = with(&rig.grant_for("acme/missing"));
    let url = url.replace("shop", "missing");
    let refused = try_git(&["-c", &missing, "ls-remote", &url]).await.unwrap_err();
    assert!(
        refused.contains("not found") || refused.contains("404"),
        "{refused}"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_clones_cause_one_fetch() {
    let mut rig = Rig::start().await;
    let header = format!(
        "http.extraHeader=Authorization: Bearer {}",
        rig.grant_for("acme/shop")
    );
    let url = rig.gate_url();
    let look = || async { run_git(&["-c", &header, "ls-remote", &url]).await };
    let heads = futures::future::join_all((0..8).map(|_| look())).await;
    assert!(heads.iter().all(|heads| heads.contains("refs/heads/main")));
    let count_fetches = || {
        let requests = rig.github.requests();
        requests
            .iter()
            .filter(|request| request.path.contains("info/refs"))
            .count()
    };
    // A first clone fetches the heads, then the base branch, then the rest. Readers get their answer after the
    // second fetch, so the third may still be under way.
    let is_whole = async || (count_fetches() >= 3).then_some(());
    poll_until("the rest of the first clone", Duration::from_secs(20), is_whole)
        .await
        .unwrap();
    assert_eq!(count_fetches(), 3);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reporter_without_queue_lives_unready_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let keys = grant::generate_key_pair();
    let config = reporter::Config {
        git: git::FetchSettings::default(),
        // Nothing listens on the discard port of a loopback address.
        nats: queue::Settings {
            url: "nats://127.0.0.1:9".to_owned(),
            ..queue::Settings::default()
        },
        redis: lease::Settings {
            url: "redis://127.0.0.1:9".to_owned(),
            ..lease::Settings::default()
        },
        telemetry: bootstrap::telemetry::Settings::default(),
        tls: None,
        rules: bootstrap::rules::Settings {
            dir: folder.path().to_owned(),
            ..bootstrap::rules::Settings::default()
        },
        reporter: reporter::Settings {
            data_dir: folder.path().join("data"),
            grant_keys: [(keys.id, keys.public_key)].into(),
            ..reporter::Settings::default()
        },
        github_writer: github::Settings {
            token: Some(SecretString::from("secret")),
            ..github::Settings::default()
        },
        jira_writer: None,
        github: std::collections::BTreeMap::new(),
        jira: std::collections::BTreeMap::new(),
        folder: std::collections::BTreeMap::new(),
        ingest: reporter::RetentionSettings::default(),
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = tokio_util::sync::CancellationToken::new();
    let serving = tokio::spawn(Box::pin(bootstrap::serve_app::<reporter::ReporterApp>(
        config,
        listener,
        shutdown.clone(),
    )));
    for (path, status) in [("/healthz", "200"), ("/readyz", "503")] {
        let answer = rig::http_get(address, path).await;
        assert!(answer.contains(status), "{path}: {answer}");
    }
    shutdown.cancel();
    let stopped = tokio::time::timeout(rig::DEADLINE, serving).await;
    stopped.expect("the reporter stops").unwrap().unwrap();
}

fn parse_record(fields: Value) -> AnyRecord {
    serde_json::from_value(fields).unwrap()
}

//! Tests of the rounds of work in the check run and in the status comment.

use domain::{
    ChecksConclusion, ChecksSummary, Dollars, FailedCheck, Job, OutboundAction, OutboundOutcome,
    OutboundReceipt, OutboundRequest, PullRequestEvent, RunId, RunPhase, StopReason, TicketKey, report,
};

use testkit::github::WRITER_APP_ID;

use crate::{
    build_work_started, draft_of,
    rig::{Rig, RigOptions},
};

const NAME: &str = "Journeyman";

fn build_progress(job: Job, cents: u64) -> Option<report::JobProgress> {
    Some(report::JobProgress {
        clone_percent: None,
        job,
        phase: Some(RunPhase::Work),
        cost: Some(Dollars::from_micros(cents * 10_000)),
    })
}

async fn as_app() -> Rig {
    let options = RigOptions {
        as_app: true,
        ..RigOptions::default()
    };
    Rig::start_with(options).await
}

fn expect_receipt(outcome: OutboundOutcome) -> OutboundReceipt {
    match outcome {
        OutboundOutcome::Done(receipt) => receipt,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_run_shows_every_round_once() {
    let mut rig = as_app().await;
    let of = |run: u64, position: u64, job: Job, cents: u64, request: OutboundAction| {
        let run = RunId::new(rig.ticket.clone(), run);
        OutboundRequest {
            id: run.call(position).into(),
            run: Some(run),
            progress: build_progress(job, cents),
            ..rig.report(position, request)
        }
    };
    let push = rig
        .change("fix/ENG-1-totals", &[("cart.py", "total = 2\n")])
        .await;
    let head = push.head.clone();
    let implement = |position, cents, request| of(1, position, Job::Implement, cents, request);
    let pushed = implement(4, 20, OutboundAction::PushBranch(push));
    let opened = implement(6, 31, draft_of("fix/ENG-1-totals"));
    expect_receipt(rig.settled(&implement(2, 0, build_work_started())).await);
    expect_receipt(rig.settled(&pushed).await);
    assert!(
        rig.github.check_run("acme/shop", head.as_str(), NAME).is_err(),
        "there is no pull request yet"
    );
    let OutboundReceipt::PullRequestOpened(pull_request) = expect_receipt(rig.settled(&opened).await) else {
        panic!("not opened")
    };
    let (title, summary, conclusion) = rig.github.check_run("acme/shop", head.as_str(), NAME).unwrap();
    assert_eq!(title, "1 round of work; the last commit waits for its checks");
    assert_eq!(conclusion, "neutral");
    assert!(
        summary.contains("| 1 | the ticket |") && summary.contains("$0.31"),
        "{summary}"
    );

    let red = ChecksSummary {
        failed: Vec::<FailedCheck>::new(),
        ..ChecksSummary::new(pull_request.clone(), head.clone(), ChecksConclusion::Failure)
    };
    let red = of(
        2,
        3,
        Job::MarkReady,
        0,
        OutboundAction::from(PullRequestEvent::ChecksCompleted(red)),
    );
    expect_receipt(rig.settled(&red).await);
    let stopped = report::RunStopped {
        job: Job::FixCi,
        reason: StopReason::NoPlan,
        pull_request: Some(pull_request.clone()),
        branch: None,
    };
    let stopped = of(3, 3, Job::FixCi, 7, OutboundAction::RunStopped(stopped));
    expect_receipt(rig.settled(&stopped).await);
    let says = |at: &str| rig.github.check_run("acme/shop", at, NAME).unwrap();
    let before = says(head.as_str());
    assert!(before.1.contains("| failed | 0 | $0.31 |"), "{}", before.1);
    assert!(
        before
            .1
            .contains("| 2 | failed checks | none | not complete | 1 | $0.07 |"),
        "{}",
        before.1
    );

    rig.deliver_everything_again(&[&pushed, &opened, &red, &stopped])
        .await;
    assert_eq!(says(head.as_str()), before);
    let runs = rig.github.check_runs("acme/shop", head.as_str()).unwrap();
    assert_eq!(runs, [NAME], "one check run for the commit");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_checks_permission_skips_only_check_run() {
    let mut rig = as_app().await;
    let lacking = [
        ("contents", "write"),
        ("pull_requests", "write"),
        ("issues", "write"),
        ("metadata", "read"),
    ];
    rig.github.set_app_permissions(WRITER_APP_ID, &lacking);
    let push = rig
        .change("fix/ENG-1-totals", &[("cart.py", "total = 2\n")])
        .await;
    let head = push.head.clone();
    let notice = |position, request| OutboundRequest {
        progress: build_progress(Job::Implement, 3),
        ..rig.report(position, request)
    };
    expect_receipt(rig.settled(&notice(2, build_work_started())).await);
    expect_receipt(rig.settled(&notice(4, OutboundAction::PushBranch(push))).await);
    let opened = expect_receipt(rig.settled(&notice(6, draft_of("fix/ENG-1-totals"))).await);
    assert!(
        matches!(opened, OutboundReceipt::PullRequestOpened(_)),
        "{opened:?}"
    );
    assert!(rig.github.check_run("acme/shop", head.as_str(), NAME).is_err());
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_comment_follows_phases_with_hidden_state() {
    let mut rig = Rig::start().await;
    let number = rig
        .github
        .open_issue_as("acme/shop", "rita", "Totals", "They are wrong")
        .unwrap();
    let ticket: TicketKey = format!("github:acme/shop#{number}").parse().unwrap();
    let run = RunId::new(ticket.clone(), 1);
    let of = |position: u64, phase, cents, request| OutboundRequest {
        id: run.call(position).into(),
        ticket: ticket.clone(),
        run: Some(run.clone()),
        progress: build_progress(Job::Implement, cents).map(|known| report::JobProgress { phase, ..known }),
        ..rig.report(position, request)
    };
    let progressed = || OutboundAction::Progressed(report::ProgressUpdate {});
    expect_receipt(rig.settled(&of(2, None, 0, build_work_started())).await);
    let comments = || rig.github.comments("acme/shop", number);
    let said = |part: &str| {
        assert!(
            comments()[0].body.contains(part),
            "{part}: {}",
            comments()[0].body
        )
    };
    said("(implement), ");
    expect_receipt(rig.settled(&of(4, Some(RunPhase::Plan), 12, progressed())).await);
    said("(implement: planning), ");
    said("$0.12 spent");
    expect_receipt(rig.settled(&of(6, Some(RunPhase::Work), 30, progressed())).await);
    said("(implement: making the change), ");
    said("\"iteration\":1");
    let stopped = report::RunStopped {
        job: Job::Implement,
        reason: StopReason::NoPlan,
        pull_request: None,
        branch: None,
    };
    expect_receipt(
        rig.settled(&of(
            8,
            Some(RunPhase::Work),
            31,
            OutboundAction::RunStopped(stopped),
        ))
        .await,
    );
    assert!(comments()[0].body.starts_with("❌ "), "{}", comments()[0].body);
    said("(implement), ");
    said("\"consecutive_failures\":1");
    assert_eq!(comments().len(), 1, "it is one comment all the time");
    rig.stop().await;
}

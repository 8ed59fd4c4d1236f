//! Tests that texts contain no credential, and that a person's pull request is not adopted.

use domain::{
    ChecksConclusion, ChecksSummary, Job, OutboundAction, OutboundOutcome, OutboundReceipt, PullRequestEvent,
    StopReason, report,
};

use crate::{draft_of, read_refusal, rig::Rig};

const BRANCH: &str = "fix/ENG-1-totals";

fn build_fake_token() -> String {
    format!("ghp_{}", "a1B2c3D4e5".repeat(4))
}

fn build_stop_report(reason: StopReason) -> OutboundAction {
    OutboundAction::RunStopped(report::RunStopped {
        job: Job::Implement,
        reason,
        pull_request: None,
        branch: None,
    })
}

async fn push_change(rig: &Rig) {
    let push = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    let outcome = rig.settle_push(2, push).await;
    assert!(matches!(outcome, OutboundOutcome::Done(_)), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn credential_in_model_text_is_refused() {
    let mut rig = Rig::start().await;
    push_change(&rig).await;
    let said = |title: &str, body: &str| {
        let mut request = draft_of(BRANCH);
        if let OutboundAction::OpenPullRequest(report::PullRequestOpening {
            title: here,
            body: there,
            ..
        }) = &mut request
        {
            (*here, *there) = (title.to_owned(), body.to_owned());
        }
        request
    };
    let requests = [
        (
            said(&format!("fix: {}", build_fake_token()), "Body."),
            "the title",
        ),
        (
            said("fix: totals", &format!("```\n{}\n```", build_fake_token())),
            "the body",
        ),
        (
            OutboundAction::Triaged(report::TicketTriaged {
                labels: vec![build_fake_token()],
                ..report::TicketTriaged::default()
            }),
            "a label",
        ),
    ];
    for (position, (request, place)) in (4..).step_by(2).zip(requests) {
        let outcome = rig.settled(&rig.report(position, request)).await;
        let words = read_refusal(&outcome);
        assert!(words.contains(place) && words.contains("GitHub token"), "{words}");
        assert!(!words.contains(&build_fake_token()), "{words}");
    }
    assert_eq!(rig.github.pull_requests("acme/shop").len(), 0);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_notice_contains_no_credential() {
    let mut rig = Rig::start().await;
    let summary = format!("I read {} in the environment.", build_fake_token());
    let log_tail = format!("+ curl -H 'Authorization: Bearer {}'", build_fake_token());
    let detail = format!("push to https://x:{}@github.example failed", build_fake_token());
    let reasons = [
        StopReason::NoChange { summary },
        StopReason::SetupFailed { log_tail },
        StopReason::ReportFailed {
            detail: detail.clone(),
        },
        StopReason::ModelFailed { detail },
    ];
    for (position, reason) in (2..).step_by(2).zip(reasons) {
        let outcome = rig
            .settled(&rig.report(position, build_stop_report(reason)))
            .await;
        assert_eq!(outcome, OutboundOutcome::Done(OutboundReceipt::Told));
    }
    let comments = rig.jira.comments("ENG-1");
    let text = &comments[0].text;
    assert!(
        text.contains("removed]") && !text.contains("a1B2c3D4e5"),
        "{text}"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_pull_request_is_not_adopted() {
    let mut rig = Rig::start().await;
    push_change(&rig).await;
    let number = rig
        .github
        .open_pull_request_as("acme/shop", "ann", BRANCH, "Mine", "")
        .unwrap();
    let outcome = rig.settled(&rig.report(4, draft_of(BRANCH))).await;
    assert!(read_refusal(&outcome).contains("`ann` opened"), "{outcome:?}");
    let pull_request = domain::PullRequestRef {
        repository: "acme/shop".parse().unwrap(),
        number,
        url: "https://github.example/acme/shop/pull/1".to_owned(),
        branch: BRANCH.to_owned(),
    };
    let head = rig.github.branches("acme/shop")[BRANCH].parse().unwrap();
    let passed = OutboundAction::from(PullRequestEvent::ChecksCompleted(ChecksSummary::new(
        pull_request,
        head,
        ChecksConclusion::Success,
    )));
    let outcome = rig.settled(&rig.report(6, passed)).await;
    assert!(
        read_refusal(&outcome).contains("not opened for this ticket"),
        "{outcome:?}"
    );
    rig.stop().await;
}

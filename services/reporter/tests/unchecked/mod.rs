//! Tests of pull requests on which no check reports.

use domain::{
    ChecksConclusion, ChecksSummary, OutboundAction, OutboundOutcome, OutboundReceipt, PullRequestEvent,
};
use testkit::github::BranchRuleset;

use crate::{
    draft_of,
    rig::{Rig, RigOptions},
};

const BRANCH: &str = "fix/ENG-1-totals";

/// Opens the draft and reports that no check exists. Returns its draft state and the text on the ticket.
async fn report_missing_checks(rig: &mut Rig) -> (bool, String) {
    let push = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    let head = push.head.clone();
    rig.settle_push(2, push).await;
    let opened = rig.settled(&rig.report(4, draft_of(BRANCH))).await;
    let OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(pull_request)) = opened else {
        panic!("{opened:?}")
    };
    let absent = rig.report(
        6,
        OutboundAction::from(PullRequestEvent::ChecksCompleted(ChecksSummary::new(
            pull_request,
            head,
            ChecksConclusion::Absent,
        ))),
    );
    assert_eq!(
        rig.settled(&absent).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );
    rig.deliver_everything_again(&[&absent]).await;
    let is_draft = rig.github.pull_requests("acme/shop")[0].draft;
    let said = rig.jira.comments("ENG-1").pop().unwrap().text;
    (is_draft, said)
}

/// Lists the people whose review of the pull request is requested.
fn list_requested_reviewers(rig: &Rig) -> Vec<String> {
    rig.github.pull_requests("acme/shop")[0]
        .requested_reviewers
        .clone()
}

/// Options with rules in addition to those of every story.
fn with_rules(more: &'static str) -> RigOptions {
    RigOptions {
        agent: more,
        ..RigOptions::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn draft_without_any_ci_becomes_ready() {
    let mut rig = Rig::start_with(with_rules("pull_request:\n  reviewers: [grace]\n")).await;
    let ruleset = BranchRuleset {
        branches: vec!["main".to_owned()],
        required_approvals: 1,
        ..BranchRuleset::default()
    };
    rig.github.set_rulesets("acme/shop", &[ruleset]).unwrap();
    let (is_draft, said) = report_missing_checks(&mut rig).await;
    assert!(!is_draft);
    assert_eq!(list_requested_reviewers(&rig), ["grace"]);
    let approvals = "1 approval is required, none is given; review requested from grace";
    assert!(said.contains(approvals), "{said}");
    assert!(
        said.contains("No check reports") && said.contains("run the tests"),
        "{said}"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn configured_but_silent_ci_keeps_draft() {
    let workflow = [(".github/workflows/ci.yaml", "on: push\n")];
    let mut rig = Rig::start_with(with_rules("pull_request:\n  reviewers: [grace]\n")).await;
    rig.github.commit("acme/shop", "main", "ci", &workflow).unwrap();
    let (is_draft, said) = report_missing_checks(&mut rig).await;
    assert!(is_draft);
    assert!(list_requested_reviewers(&rig).is_empty());
    assert!(
        said.contains(".github/workflows/ci.yaml") && said.contains("ci.required: false"),
        "{said}"
    );
    assert_eq!(
        rig.jira.status("ENG-1").as_deref(),
        Some("To Do"),
        "it is not handed over"
    );
    rig.stop().await;

    let mut rig = Rig::start().await;
    rig.github
        .require_checks("acme/shop", "main", &["build"])
        .unwrap();
    let (is_draft, said) = report_missing_checks(&mut rig).await;
    assert!(is_draft && said.contains("build"), "{said}");
    rig.stop().await;

    let mut rig = Rig::start().await;
    let of_branch = |branch: &str, check: &str| BranchRuleset {
        branches: vec![branch.to_owned()],
        required_checks: vec![check.to_owned()],
        ..BranchRuleset::default()
    };
    let rulesets = [
        of_branch("release/*", "slow tests"),
        of_branch("main", "quick tests"),
    ];
    rig.github.set_rulesets("acme/shop", &rulesets).unwrap();
    let (is_draft, said) = report_missing_checks(&mut rig).await;
    assert!(is_draft && said.contains("quick tests"), "{said}");
    assert!(!said.contains("slow tests"), "that is another branch's: {said}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workflows_of_own_action_are_no_ci() {
    let workflows = [
        (
            ".github/workflows/journeyman.yml",
            include_str!("../../../../packaging/action/journeyman.yml"),
        ),
        (
            ".github/workflows/journeyman-reviews.yml",
            include_str!("../../../../packaging/action/journeyman-reviews.yml"),
        ),
    ];
    let mut rig = Rig::start().await;
    rig.github
        .commit("acme/shop", "main", "action", &workflows)
        .unwrap();
    let (is_draft, said) = report_missing_checks(&mut rig).await;
    assert!(!is_draft, "{said}");
    rig.stop().await;

    let workflow = [(".github/workflows/test.yml", "on: push\n")];
    let mut rig = Rig::start().await;
    rig.github
        .commit("acme/shop", "main", "action", &workflows)
        .unwrap();
    rig.github
        .commit("acme/shop", "main", "tests", &workflow)
        .unwrap();
    let (is_draft, said) = report_missing_checks(&mut rig).await;
    assert!(
        is_draft && said.contains(".github/workflows/test.yml"),
        "the other workflow is CI: {said}"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ci_required_rule_overrides_detection() {
    let workflow = [(".github/workflows/ci.yml", "on: push\n")];
    let mut rig = Rig::start_with(with_rules("ci: {required: false}\n")).await;
    rig.github.commit("acme/shop", "main", "ci", &workflow).unwrap();
    let (is_draft, said) = report_missing_checks(&mut rig).await;
    assert!(!is_draft, "{said}");
    rig.stop().await;

    let mut rig = Rig::start_with(with_rules("ci: {required: true}\n")).await;
    let (is_draft, said) = report_missing_checks(&mut rig).await;
    assert!(is_draft && said.contains("ci.required: true"), "{said}");
    rig.stop().await;
}

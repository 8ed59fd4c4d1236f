//! Tests of review requests, notifications and assignments.

use domain::{
    ChecksConclusion, ChecksSummary, FailedCheck, FailureClass, Job, OutboundAction, OutboundOutcome,
    OutboundReceipt, PullRequestEvent, PullRequestRef, RepairEnd, StopReason, ThreadDisposition, ThreadReply,
    report,
};
use testkit::{ServiceFault, github};

use crate::{
    build_work_started, draft_of,
    rig::{Rig, RigOptions},
};

const BRANCH: &str = "fix/ENG-1-totals";

async fn with_rules(rules: &'static str) -> Rig {
    Rig::start_with(RigOptions {
        agent: rules,
        ..RigOptions::default()
    })
    .await
}

/// Opens a draft of ours that changes files, and returns it with its head.
async fn open_draft(rig: &Rig, files: &[(&str, &str)]) -> (PullRequestRef, domain::CommitId) {
    let push = rig.change(BRANCH, files).await;
    let head = push.head.clone();
    rig.settle_push(4, push).await;
    match rig.settled(&rig.report(6, draft_of(BRANCH))).await {
        OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(opened)) => (opened, head),
        other => panic!("{other:?}"),
    }
}

/// Hands the pull request over, and returns the requested reviewers.
async fn asked_for_review(rig: &Rig, files: &[(&str, &str)]) -> Vec<String> {
    let (pull_request, head) = open_draft(rig, files).await;
    let passed = ChecksSummary::new(pull_request, head, ChecksConclusion::Success);
    let outcome = rig
        .settled(&rig.report(8, OutboundAction::from(PullRequestEvent::ChecksCompleted(passed))))
        .await;
    assert_eq!(outcome, OutboundOutcome::Done(OutboundReceipt::Told));
    rig.github.pull_requests("acme/shop")[0]
        .requested_reviewers
        .clone()
}

/// Commits four lines by olga, the last of which bob rewrites.
fn written_by_two(rig: &Rig) {
    let commit = |login: &str, text: &str| {
        let files = [("total.py", text)];
        rig.github
            .commit_by("acme/shop", "main", login, "Totals", &files)
            .unwrap();
    };
    commit("olga", "a = 1\nb = 2\nc = 3\nd = 4\n");
    commit("bob", "a = 1\nb = 2\nc = 3\nd = 5\n");
}

const CHANGED: [(&str, &str); 2] = [
    ("total.py", "a = 10\nb = 20\nc = 3\nd = 50\n"),
    ("new.py", "x = 1\n"),
];

#[tokio::test(flavor = "multi_thread")]
async fn main_author_of_touched_lines_is_asked() {
    let mut rig = Rig::start().await;
    written_by_two(&rig);
    assert_eq!(asked_for_review(&rig, &CHANGED).await, ["olga"]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn touched_author_without_push_right_is_skipped() {
    let mut rig = with_rules("pull_request:\n  touched_authors: 3\n").await;
    written_by_two(&rig);
    rig.github.set_permission("acme/shop", "olga", "read").unwrap();
    assert_eq!(asked_for_review(&rig, &CHANGED).await, ["bob"]);
    rig.stop().await;

    for rules in [
        "pull_request:\n  touched_authors: 0\n",
        "pull_request:\n  reviewers: [grace]\n",
    ] {
        let mut rig = with_rules(rules).await;
        written_by_two(&rig);
        let named = if rules.contains("grace") {
            vec!["grace"]
        } else {
            Vec::new()
        };
        assert_eq!(asked_for_review(&rig, &CHANGED).await, named, "{rules}");
        rig.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn code_owners_are_asked_by_rule() {
    let mut rig = with_rules("pull_request:\n  code_owners: true\n  reviewers: [grace]\n").await;
    written_by_two(&rig);
    let owners = "* @nobody\n*.py @Fay @grace @acme/team\n";
    let files = [(".github/CODEOWNERS", owners)];
    rig.github.commit("acme/shop", "main", "Owners", &files).unwrap();
    assert_eq!(asked_for_review(&rig, &CHANGED).await, ["grace", "Fay"]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn module_owners_are_asked_without_code_owners() {
    let mut rig = with_rules(
        "pull_request:\n  reviewers: [grace]\nmodules:\n  - {name: sums, paths: [total.py], owners: [Fay, grace]}\n  \
         - {name: new, paths: [new.py], owners: [fay, ben]}\n  - {name: docs, paths: [docs], owners: [dora]}\n",
    )
    .await;
    written_by_two(&rig);
    rig.github.set_permission("acme/shop", "ben", "read").unwrap();
    assert_eq!(asked_for_review(&rig, &CHANGED).await, ["grace", "Fay"]);
    rig.stop().await;

    // GitHub asks the owners of the file, or the rules say so.
    let mut rig = with_rules("modules:\n  - {name: sums, paths: [total.py], owners: [Fay]}\n").await;
    written_by_two(&rig);
    let files = [("CODEOWNERS", "*.md @eve\n")];
    rig.github.commit("acme/shop", "main", "Owners", &files).unwrap();
    assert_eq!(asked_for_review(&rig, &CHANGED).await, ["olga"]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn handover_counts_approvals_with_reviewers() {
    let mut rig = with_rules("pull_request:\n  reviewers: [grace]\n").await;
    let ruleset = github::BranchRuleset {
        branches: vec!["main".to_owned()],
        required_approvals: 2,
        ..github::BranchRuleset::default()
    };
    rig.github.set_rulesets("acme/shop", &[ruleset]).unwrap();
    assert_eq!(asked_for_review(&rig, &CHANGED).await, ["grace"]);
    let comments = rig.jira.comments("ENG-1");
    let words = "2 approvals are required, none is given; review requested from grace";
    assert!(
        comments.iter().any(|comment| comment.text.contains(words)),
        "{comments:?}"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_reviewer_leaves_request_of_others() {
    let mut rig = with_rules("pull_request:\n  reviewers: [gone, grace]\n").await;
    let ruleset = github::BranchRuleset {
        branches: vec!["main".to_owned()],
        required_approvals: 2,
        ..github::BranchRuleset::default()
    };
    rig.github.set_rulesets("acme/shop", &[ruleset]).unwrap();
    // GitHub rejects each request that names somebody who is no collaborator.
    let rejected = ServiceFault::new("/requested_reviewers", 9, 422);
    rig.github.fail_next(rejected.on("POST").with("gone"));
    assert_eq!(asked_for_review(&rig, &CHANGED).await, ["grace"]);
    let comments = rig.jira.comments("ENG-1");
    let words = "2 approvals are required, none is given; review requested from grace";
    assert!(
        comments.iter().any(|comment| comment.text.contains(words)),
        "{comments:?}"
    );
    rig.stop().await;
}

fn build_checks_failure(
    pull_request: &PullRequestRef,
    head: &domain::CommitId,
    asked: &[&str],
) -> OutboundAction {
    OutboundAction::from(PullRequestEvent::ChecksCompleted(ChecksSummary {
        failed: vec![FailedCheck {
            name: "test".to_owned(),
            url: "https://ci.example/1".to_owned(),
            log_tail: String::new(),
            class: FailureClass::Real,
            step: String::new(),
            command: String::new(),
            log: String::new(),
        }],
        unrepaired: Some(RepairEnd::PerHead),
        asked: asked.iter().map(|login| (*login).to_owned()).collect(),
        ..ChecksSummary::new(pull_request.clone(), head.clone(), ChecksConclusion::Failure)
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn exhausted_repairs_call_once_despite_repetition() {
    let mut rig = Rig::start().await;
    let (pull_request, head) = open_draft(&rig, &CHANGED).await;
    let number = pull_request.number;
    let lost = ServiceFault::new(&format!("/issues/{number}/comments"), 1, 502);
    rig.github.fail_next(lost.on("POST").after_effect());
    let notice = rig.report(8, build_checks_failure(&pull_request, &head, &["grace"]));
    assert_eq!(
        rig.settled(&notice).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );
    rig.deliver_everything_again(&[&notice]).await;
    let said = rig.github.comments("acme/shop", number);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].body.contains("@grace") && said[0].body.contains("[log](<https://ci.example/1>)"),
        "{said:?}"
    );
    assert_eq!(rig.jira.comments("ENG-1").len(), 1, "the status comment alone");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_reviewer_notifies_jira_ticket_separately() {
    let mut rig = Rig::start().await;
    let (pull_request, head) = open_draft(&rig, &CHANGED).await;
    rig.settled(&rig.report(8, build_checks_failure(&pull_request, &head, &[])))
        .await;
    let addressed = report::ReviewAddressed {
        pull_request: pull_request.clone(),
        reviewer: "rita".to_owned(),
        commit: None,
        summary: String::new(),
        replies: vec![ThreadReply {
            id: 77,
            disposition: ThreadDisposition::Asked,
            reply: "The ticket says net.".to_owned(),
        }],
        left: None,
        deciders: Vec::new(),
    };
    rig.settled(&rig.report(10, OutboundAction::ReviewAddressed(addressed)))
        .await;
    let said: Vec<String> = rig
        .jira
        .comments("ENG-1")
        .into_iter()
        .map(|comment| comment.text)
        .collect();
    assert_eq!(said.len(), 3, "{said:#?}");
    assert!(
        said.iter().any(|text| text.contains("Please continue here:")),
        "{said:#?}"
    );
    assert!(
        said.iter()
            .any(|text| text.contains("waits for a decision there")),
        "{said:#?}"
    );
    let asked = &rig.github.pull_requests("acme/shop")[0].requested_reviewers;
    assert!(
        asked.is_empty(),
        "nobody looks before somebody has decided: {asked:?}"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unassigned_jira_ticket_is_ours_while_working() {
    let mut rig = with_rules("  assign: true\n").await;
    assert_eq!(
        rig.settled(&rig.report(2, build_work_started())).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );
    assert_eq!(
        rig.jira.assignee("ENG-1").as_deref(),
        Some(testkit::jira::WRITER_NAME)
    );
    let stopped = report::RunStopped {
        job: Job::Implement,
        reason: StopReason::TurnLimit { turns: 60 },
        pull_request: None,
        branch: None,
    };
    let limit = OutboundAction::RunStopped(stopped);
    rig.settled(&rig.report(4, limit.clone())).await;
    assert_eq!(rig.jira.assignee("ENG-1"), None);

    rig.jira.assign("ENG-1", "Ada").unwrap();
    rig.settled(&rig.report(6, build_work_started())).await;
    assert_eq!(
        rig.jira.assignee("ENG-1").as_deref(),
        Some("Ada"),
        "whoever has it keeps it"
    );
    rig.settled(&rig.report(8, limit)).await;
    assert_eq!(
        rig.jira.assignee("ENG-1").as_deref(),
        Some("Ada"),
        "it is not ours to give back"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unassignable_account_does_not_stop_work() {
    let mut rig = with_rules("  assign: \"557058:nobody\"\n").await;
    assert_eq!(
        rig.settled(&rig.report(2, build_work_started())).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );
    assert_eq!(rig.jira.assignee("ENG-1"), None);
    assert_eq!(rig.jira.status("ENG-1").as_deref(), Some("In Progress"));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn github_issue_is_assigned_then_given_back() {
    let mut rig = with_rules("  assign: agent\n").await;
    let number = rig
        .github
        .open_issue_as("acme/shop", "rita", "Totals", "Wrong")
        .unwrap();
    rig.ticket = format!("github:acme/shop#{number}").parse().unwrap();
    rig.settled(&rig.report(2, build_work_started())).await;
    assert_eq!(
        rig.github.issue("acme/shop", number).unwrap().assignees,
        ["agent"]
    );
    let stopped = report::RunStopped {
        job: Job::Implement,
        reason: StopReason::ModelRefused,
        pull_request: None,
        branch: None,
    };
    rig.settled(&rig.report(4, OutboundAction::RunStopped(stopped)))
        .await;
    assert!(
        rig.github
            .issue("acme/shop", number)
            .unwrap()
            .assignees
            .is_empty()
    );
    let ours = rig.github.comments("acme/shop", number);
    assert!(ours.iter().all(|comment| comment.author == github::WRITER_LOGIN));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_request_links_ticket_and_configured_board() {
    let mut rig = Rig::start_with(RigOptions {
        jira: "  base_url: https://jira.people.example/\n  board_id: 296\n",
        ..RigOptions::default()
    })
    .await;
    open_draft(&rig, &CHANGED).await;
    let body = &rig.github.pull_requests("acme/shop")[0].body;
    assert!(
        body.contains("For [ENG-1](https://jira.people.example/browse/ENG-1)"),
        "{body}"
    );
    let board = "([board](https://jira.people.example/secure/RapidBoard.jspa?rapidView=296))";
    assert!(body.contains(board), "{body}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn permanent_jira_refusal_keeps_pull_request() {
    let mut rig = Rig::start().await;
    rig.jira
        .fail_next(ServiceFault::new("/remotelink", 9, 400).on("POST"));
    rig.jira
        .fail_next(ServiceFault::new("/transitions", 9, 400).on("POST"));
    let (pull_request, head) = open_draft(&rig, &CHANGED).await;
    let said = || rig.jira.comments("ENG-1")[0].text.clone();
    assert!(
        said().contains("is open.") && said().contains("Jira did not link it on this ticket"),
        "{}",
        said()
    );
    assert!(rig.jira.remote_links("ENG-1").is_empty());
    let passed = ChecksSummary::new(pull_request, head, ChecksConclusion::Success);
    let outcome = rig
        .settled(&rig.report(8, OutboundAction::from(PullRequestEvent::ChecksCompleted(passed))))
        .await;
    assert_eq!(outcome, OutboundOutcome::Done(OutboundReceipt::Told));
    assert!(
        !rig.github.pull_requests("acme/shop")[0].draft,
        "it is ready all the same"
    );
    assert_eq!(rig.jira.status("ENG-1").as_deref(), Some("To Do"));
    assert!(
        said().contains("In Review"),
        "a person has to move it: {}",
        said()
    );
    rig.stop().await;
}

//! Requirements of a repository that are read before the work.

use std::time::Duration;

use domain::{
    Job, OutboundAction, OutboundOutcome, OutboundReceipt, OutboundRefusal, PatternSubject, PolicyViolation,
    RunId, TicketKey, report,
};
use testkit::{
    ServiceFault,
    github::{BranchRuleset, RulesetCondition, RulesetPattern, WRITER_APP_ID},
};

use crate::{
    build_work_started, draft_of,
    rig::{Rig, RigOptions},
};

async fn start_as_app() -> Rig {
    Rig::start_with(RigOptions {
        as_app: true,
        ..RigOptions::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_permission_ends_work_before_announcement() {
    let mut rig = start_as_app().await;
    let lacking = [("contents", "write"), ("metadata", "read"), ("checks", "write")];
    rig.github.set_app_permissions(WRITER_APP_ID, &lacking);
    let outcome = rig.settled(&rig.report(2, build_work_started())).await;
    let OutboundOutcome::Refused(refusal) = outcome else {
        panic!("{outcome:?}")
    };
    let OutboundRefusal::MissingRights { rights, section, .. } = &refusal else {
        panic!("{refusal:?}")
    };
    assert_eq!(rights, &["pull_requests:write"]);
    assert_eq!(section, "github_writer");
    assert!(
        refusal.words().contains("`[github_writer]`"),
        "{}",
        refusal.words()
    );
    assert_eq!(rig.jira.status_history("ENG-1"), ["To Do"]);
    assert!(rig.jira.comments("ENG-1").is_empty());
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn issue_ticket_needs_permission_for_issues() {
    let mut rig = start_as_app().await;
    let number = rig
        .github
        .open_issue_as("acme/shop", "rita", "Totals", "They are wrong")
        .unwrap();
    let lacking = [
        ("contents", "write"),
        ("metadata", "read"),
        ("pull_requests", "write"),
    ];
    rig.github.set_app_permissions(WRITER_APP_ID, &lacking);
    // A ticket at Jira gets its comments there.
    let outcome = rig.settled(&rig.report(2, build_work_started())).await;
    assert!(matches!(outcome, OutboundOutcome::Done(_)), "{outcome:?}");
    let ticket: TicketKey = format!("github:acme/shop#{number}").parse().unwrap();
    let run = RunId::new(ticket.clone(), 1);
    let report = domain::OutboundRequest {
        id: run.call(2).into(),
        ticket,
        run: Some(run),
        ..rig.report(2, build_work_started())
    };
    let outcome = rig.settled(&report).await;
    assert!(
        matches!(&outcome, OutboundOutcome::Refused(OutboundRefusal::MissingRights { rights, .. })
            if rights == &["issues:write"]),
        "{outcome:?}"
    );
    rig.stop().await;
}

const SHOP: &str = "acme/shop";

/// Requires a pattern of these branches.
fn require_pattern(rig: &Rig, branches: &[&str], pattern: RulesetPattern) {
    let ruleset = BranchRuleset {
        branches: branches.iter().map(|branch| (*branch).to_owned()).collect(),
        patterns: vec![pattern],
        ..BranchRuleset::default()
    };
    rig.github.set_rulesets(SHOP, &[ruleset]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn pattern_for_messages_is_in_receipt() {
    let mut rig = Rig::start().await;
    let pattern = RulesetPattern::new("commit_message_pattern", "regex", "^[A-Z]+-[0-9]+: ");
    require_pattern(&rig, &["main"], pattern);
    let outcome = rig.settled(&rig.report(2, build_work_started())).await;
    let OutboundOutcome::Done(OutboundReceipt::Started { patterns }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(patterns.len(), 1);
    assert_eq!(
        patterns[0].words(),
        "the commit message must match the regular expression `^[A-Z]+-[0-9]+: `"
    );
    assert_ne!(
        rig.jira.status_history("ENG-1"),
        ["To Do"],
        "the work is announced"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_both_branches_are_read_together() {
    let mut rig = Rig::start().await;
    // The read of the target branch is repeated, and that of the pushed one does not wait for it.
    let fault = ServiceFault::new("shop/branches/main", 1, 502);
    rig.github.fail_next(fault.held(Duration::from_millis(200)));
    let outcome = rig.settled(&rig.report(2, build_work_started())).await;
    assert!(matches!(outcome, OutboundOutcome::Done(_)), "{outcome:?}");
    let requests = rig.github.requests();
    let reads = requests.iter().filter_map(|request| {
        request
            .path
            .split_once("shop/branches/")
            .map(|(_, branch)| branch)
    });
    let reads: Vec<&str> = reads.collect();
    let [first, second, third, ..] = reads.as_slice() else {
        panic!("{reads:?}")
    };
    assert!(
        [first, second].iter().any(|branch| branch.starts_with("feat")) && third.starts_with("main"),
        "{reads:?}"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unmet_name_or_address_ends_work() {
    for (kind, operator, pattern, subject, setting) in [
        (
            "branch_name_pattern",
            "starts_with",
            "team/",
            PatternSubject::BranchName,
            "`branching.pattern`",
        ),
        (
            "commit_author_email_pattern",
            "ends_with",
            "@acme.example",
            PatternSubject::AuthorEmail,
            "`commits.author`",
        ),
        (
            "committer_email_pattern",
            "ends_with",
            "@acme.example",
            PatternSubject::CommitterEmail,
            "`reporter.signing.committer`",
        ),
    ] {
        let mut rig = Rig::start().await;
        require_pattern(&rig, &["*"], RulesetPattern::new(kind, operator, pattern));
        let outcome = rig.settled(&rig.report(2, build_work_started())).await;
        let OutboundOutcome::Refused(refusal) = outcome else {
            panic!("{kind}: {outcome:?}")
        };
        assert!(
            matches!(&refusal, OutboundRefusal::UnmetPattern { pattern, .. } if pattern.subject == subject),
            "{refusal:?}"
        );
        let words = refusal.words();
        assert!(words.contains(setting) && words.contains(pattern), "{words}");
        assert!(rig.jira.comments("ENG-1").is_empty());
        rig.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resolution_on_linear_branches_does_not_begin() {
    let mut rig = Rig::start().await;
    let ruleset = BranchRuleset {
        branches: vec!["*".to_owned()],
        conditions: vec![RulesetCondition::LinearHistory],
        ..BranchRuleset::default()
    };
    rig.github.set_rulesets(SHOP, &[ruleset]).unwrap();
    let of = |job| {
        OutboundAction::WorkStarted(report::WorkStarted {
            job,
            repository: SHOP.parse().unwrap(),
            begun: report::WorkOrigin::default(),
        })
    };
    let outcome = rig.settled(&rig.report(2, of(Job::ResolveConflict))).await;
    assert!(
        matches!(
            outcome,
            OutboundOutcome::Refused(OutboundRefusal::LinearHistory { .. })
        ),
        "{outcome:?}"
    );
    let outcome = rig.settled(&rig.report(4, of(Job::FixCi))).await;
    assert!(matches!(outcome, OutboundOutcome::Done(_)), "{outcome:?}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resolution_is_judged_by_its_branch() {
    for (linear, is_refused) in [("fix/*", true), ("feat/*", false)] {
        let mut rig = Rig::start().await;
        let branch = "fix/ENG-1-totals";
        let push = rig.change(branch, &[("cart.py", "total = 2\n")]).await;
        rig.settle_push(2, push).await;
        rig.settled(&rig.report(4, draft_of(branch))).await;
        let ruleset = BranchRuleset {
            branches: vec![linear.to_owned()],
            conditions: vec![RulesetCondition::LinearHistory],
            ..BranchRuleset::default()
        };
        rig.github.set_rulesets(SHOP, &[ruleset]).unwrap();
        let started = OutboundAction::WorkStarted(report::WorkStarted {
            job: Job::ResolveConflict,
            repository: SHOP.parse().unwrap(),
            begun: report::WorkOrigin::default(),
        });
        let outcome = rig.settled(&rig.report(6, started)).await;
        let found = matches!(
            outcome,
            OutboundOutcome::Refused(OutboundRefusal::LinearHistory { .. })
        );
        assert_eq!(found, is_refused, "{outcome:?}");
        rig.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn message_against_pattern_is_not_pushed() {
    let mut rig = Rig::start().await;
    let pattern = RulesetPattern::new("commit_message_pattern", "starts_with", "ENG-1: ");
    require_pattern(&rig, &["fix/*"], pattern);
    let change = [("cart.py", "total = 2\n")];
    let push = rig
        .change_as("fix/ENG-1-totals", &change, "fix: totals (ENG-1)")
        .await;
    let outcome = rig.settle_push(2, push).await;
    let OutboundOutcome::Refused(OutboundRefusal::Policy { violations }) = &outcome else {
        panic!("{outcome:?}")
    };
    assert!(
        matches!(violations.as_slice(), [PolicyViolation::Pattern { commit, .. }] if !commit.is_empty()),
        "{violations:?}"
    );
    assert_eq!(rig.count_pushes(), 0);
    let push = rig
        .change_as("fix/ENG-1-total", &change, "ENG-1: fix totals")
        .await;
    let outcome = rig.settle_push(4, push).await;
    assert!(matches!(outcome, OutboundOutcome::Done(_)), "{outcome:?}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expression_of_foreign_dialect_is_left_to_server() {
    let mut rig = Rig::start().await;
    // The server's hook knows back references, and the product cannot compile one.
    let pattern = RulesetPattern::new("commit_message_pattern", "regex", r"^(E)NG-.*\1$");
    require_pattern(&rig, &["fix/*"], pattern);
    let change = [("cart.py", "total = 2\n")];
    let push = rig
        .change_as("fix/ENG-1-totals", &change, "fix: totals (ENG-1)")
        .await;
    let outcome = rig.settle_push(2, push).await;
    let OutboundOutcome::Refused(OutboundRefusal::PushRejected { branch, detail }) = &outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(branch, "fix/ENG-1-totals");
    assert!(detail.contains("GH013"), "{detail}");
    assert!(
        detail.contains("Commit message must match a given regex pattern: ^(E)NG-"),
        "{detail}"
    );
    rig.stop().await;
}

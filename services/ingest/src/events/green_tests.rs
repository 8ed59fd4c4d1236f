//! "Green is green": runs that await approval and checks that never end are not a success, and known failures excuse no new
//! one.

use std::time::Duration;

use domain::{
    FailureClass, Job, MergeState, PullRequestEvent, SkipReason, Timestamp, TriggerChannel, TriggerKey,
    TriggerReason,
};
use github::{CheckConclusion, CommitCheck, CommitRun, WorkflowRunProgress};

use super::{
    EventKind, EventVerdict,
    checks::{ChecksAbsent, ChecksChanged, ChecksPending},
    tests::{
        build_checked_facts, build_commit_check, build_commit_id, build_pull_record, build_pull_reference,
        build_repository_name, build_ticket_key, decide_event, expect_nothing, expect_trigger, facts_with,
        pull_request,
    },
};
use crate::facts::DecisionFacts;

fn build_commit_run(name: &str, progress: WorkflowRunProgress) -> CommitRun {
    CommitRun {
        name: name.to_owned(),
        url: format!("https://forge.example/acme/shop/actions/runs/{}", name.len()),
        progress,
    }
}

fn with_runs(checks: Vec<CommitCheck>, runs: Vec<CommitRun>) -> DecisionFacts {
    build_run_facts(pull_request(), checks, runs)
}

fn build_run_facts(
    now: github::PullRequest,
    checks: Vec<CommitCheck>,
    runs: Vec<CommitRun>,
) -> DecisionFacts {
    let mut facts = build_checked_facts(now, checks);
    facts.put_workflow_runs(build_repository_name(), build_commit_id(), runs);
    facts
}

fn build_polled_event() -> ChecksChanged {
    ChecksChanged::from_poll(&build_pull_record(), build_commit_id())
}

fn expect_checks_wait(reason: TriggerReason) -> (Vec<String>, bool, String) {
    match reason {
        TriggerReason::Skipped(SkipReason::ChecksWait {
            pull_request,
            checks,
            needs_approval,
            page,
        }) => {
            assert_eq!(pull_request, build_pull_reference());
            (checks, needs_approval, page)
        }
        other => panic!("no person is notified: {other:?}"),
    }
}

#[test]
fn runs_awaiting_approval_notify_once() {
    let green = || build_commit_check(1, Some(CheckConclusion::Success));
    let pending = build_commit_check(2, None);
    for checks in [vec![green()], vec![], vec![green(), pending]] {
        let runs = vec![
            build_commit_run("Tests", WorkflowRunProgress::AwaitsApproval),
            build_commit_run("Lint", WorkflowRunProgress::AwaitsApproval),
            build_commit_run("Docs", WorkflowRunProgress::Ended),
        ];
        let mut facts = with_runs(checks, runs);
        let delivered = expect_trigger(&build_polled_event(), &facts);
        assert_eq!(
            delivered.key,
            TriggerKey::new(format!("checks:acme/shop:{}:approval", build_commit_id()))
        );
        let (names, needs_approval, page) = expect_checks_wait(delivered.reason);
        assert_eq!(
            (names, needs_approval),
            (vec!["Lint".to_owned(), "Tests".to_owned()], true)
        );
        assert_eq!(page, "https://forge.example/acme/shop/actions/runs/5");
        facts.put_known(build_ticket_key(), delivered.key, Some(7));
        assert!(matches!(
            decide_event(&build_polled_event(), &facts),
            EventVerdict::Known(7)
        ));
    }
}

#[test]
fn approval_is_reported_next_to_failure() {
    let red = || vec![build_commit_check(1, Some(CheckConclusion::Failure))];
    let waiting = vec![build_commit_run("Deploy", WorkflowRunProgress::AwaitsApproval)];
    let mut facts = with_runs(red(), waiting);
    let repair = expect_trigger(&build_polled_event(), &facts);
    assert!(
        !matches!(repair.reason, TriggerReason::Skipped(_)),
        "the repair comes first: {repair:?}"
    );
    facts.put_known(build_ticket_key(), repair.key.clone(), Some(5));
    let notice = expect_trigger(&build_polled_event(), &facts);
    let (names, needs_approval, _) = expect_checks_wait(notice.reason);
    assert_eq!((names, needs_approval), (vec!["Deploy".to_owned()], true));
    facts.put_known(build_ticket_key(), notice.key, Some(7));
    assert!(matches!(
        decide_event(&build_polled_event(), &facts),
        EventVerdict::Known(7)
    ));
    let mut ended = with_runs(
        red(),
        vec![build_commit_run("Deploy", WorkflowRunProgress::Ended)],
    );
    ended.put_known(build_ticket_key(), repair.key, Some(5));
    assert!(matches!(
        decide_event(&build_polled_event(), &ended),
        EventVerdict::Known(5)
    ));
}

#[test]
fn active_workflow_runs_delay_green_checks() {
    let green = vec![build_commit_check(1, Some(CheckConclusion::Success))];
    let facts = with_runs(
        green.clone(),
        vec![build_commit_run("Tests", WorkflowRunProgress::UnderWay)],
    );
    assert_eq!(
        expect_nothing(&build_polled_event(), &facts),
        "a workflow run is not complete"
    );
    let silent = with_runs(
        vec![],
        vec![build_commit_run("Tests", WorkflowRunProgress::UnderWay)],
    );
    let absent = ChecksAbsent::from_poll(&build_pull_record(), build_commit_id());
    assert_eq!(expect_nothing(&absent, &silent), "a workflow run is not complete");
    let begun = with_runs(vec![build_commit_check(2, None)], vec![]);
    assert_eq!(expect_nothing(&absent, &begun), "a check has reported");
    let ended = with_runs(green, vec![build_commit_run("Tests", WorkflowRunProgress::Ended)]);
    let reason = expect_trigger(&build_polled_event(), &ended).reason;
    assert!(
        matches!(
            reason,
            TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(_))
        ),
        "{reason:?}"
    );
}

#[test]
fn endless_checks_are_reported_by_name() {
    let green = build_commit_check(1, Some(CheckConclusion::Success));
    let pending = ChecksPending::from_poll(&build_pull_record(), build_commit_id());
    let ready = || github::PullRequest {
        draft: false,
        ..pull_request()
    };
    let facts = build_run_facts(ready(), vec![green.clone(), build_commit_check(2, None)], vec![]);
    let delivered = expect_trigger(&pending, &facts);
    assert_eq!(
        delivered.key,
        TriggerKey::new(format!("checks:acme/shop:{}:pending", build_commit_id()))
    );
    assert_eq!(
        expect_checks_wait(delivered.reason),
        (vec!["test 2".to_owned()], false, String::new())
    );
    let run = build_run_facts(
        ready(),
        vec![green.clone()],
        vec![build_commit_run("Tests", WorkflowRunProgress::UnderWay)],
    );
    assert_eq!(
        expect_checks_wait(expect_trigger(&pending, &run).reason).0,
        ["Tests"]
    );
    let ended = with_runs(vec![green], vec![]);
    assert_eq!(expect_nothing(&pending, &ended), "the checks have ended");
}

#[test]
fn endless_check_hands_draft_over_once() {
    let green = build_commit_check(1, Some(CheckConclusion::Success));
    let pending = ChecksPending::from_poll(&build_pull_record(), build_commit_id());
    let mut facts = with_runs(vec![green, build_commit_check(2, None)], vec![]);
    let handover = expect_trigger(&pending, &facts);
    assert_eq!(
        handover.key,
        TriggerKey::new(format!("checks:acme/shop:{}:unfinished", build_commit_id()))
    );
    assert_eq!(handover.reason.job(), Some(Job::MarkReady));
    let TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(checks)) = handover.reason else {
        panic!("no handover");
    };
    assert_eq!(checks.unfinished, ["test 2"]);
    // The handover was the notice, also after the end of the draft.
    facts.put_known(build_ticket_key(), handover.key, Some(7));
    let ready = github::PullRequest {
        draft: false,
        ..pull_request()
    };
    facts.put_pull_request(build_repository_name(), 7, ready);
    assert!(matches!(decide_event(&pending, &facts), EventVerdict::Known(7)));
}

#[test]
fn draft_waits_for_more_than_unfinished_check() {
    let green = || build_commit_check(1, Some(CheckConclusion::Success));
    let red = build_commit_check(3, Some(CheckConclusion::Failure));
    let open = || build_commit_check(2, None);
    let pending = ChecksPending::from_poll(&build_pull_record(), build_commit_id());
    let approval = vec![build_commit_run("Lint", WorkflowRunProgress::AwaitsApproval)];
    for (checks, runs, names) in [
        (vec![green(), red, open()], vec![], "test 2"),
        (vec![open()], vec![], "test 2"),
        (vec![green(), open()], approval, "Lint"),
    ] {
        let facts = with_runs(checks, runs);
        let reason = expect_trigger(&pending, &facts).reason;
        assert_eq!(expect_checks_wait(reason).0, [names]);
    }
    let mut recent = with_runs(vec![green(), open()], vec![]);
    recent.now = Timestamp::from_unix_ms(2_000);
    recent.patience.pending = Duration::from_secs(7_200);
    assert_eq!(expect_nothing(&pending, &recent), "a check has ended since");
    let mut conflict = pull_request();
    conflict.merge.state = MergeState::Conflicting;
    let conflicting = build_run_facts(conflict, vec![green(), open()], vec![]);
    assert_eq!(
        expect_nothing(&pending, &conflicting),
        "the pull request conflicts with its base"
    );
}

/// Facts under rules that ignore `test 2` and the workflow `Deploy`.
fn build_ignoring_facts(checks: Vec<CommitCheck>, required: &[&str]) -> DecisionFacts {
    let rules = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\nci:\n  ignore_checks: ['test 2', Dep*]\n";
    let mut facts = facts_with(rules, TriggerChannel::Poll);
    facts.put_pull_request(build_repository_name(), 7, pull_request());
    facts.put_checks(build_repository_name(), build_commit_id(), checks);
    let runs = vec![build_commit_run("Deploy", WorkflowRunProgress::AwaitsApproval)];
    facts.put_workflow_runs(build_repository_name(), build_commit_id(), runs);
    facts.patience.settle = Duration::from_secs(30);
    let required = required.iter().map(|name| (*name).to_owned()).collect();
    facts.put_required(build_repository_name(), "main".to_owned(), required);
    facts
}

#[test]
fn ignored_check_counts_for_no_verdict() {
    let green = || build_commit_check(1, Some(CheckConclusion::Success));
    for end in [None, Some(CheckConclusion::Failure)] {
        let facts = build_ignoring_facts(vec![green(), build_commit_check(2, end)], &["test 2"]);
        let ready = expect_trigger(&build_polled_event(), &facts);
        assert_eq!(ready.reason.job(), Some(Job::MarkReady), "{end:?}");
        let TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(checks)) = ready.reason else {
            panic!("no checks");
        };
        assert_eq!(checks.ignored, ["test 2"]);
        let pending = ChecksPending::from_poll(&build_pull_record(), build_commit_id());
        assert_eq!(expect_nothing(&pending, &facts), "the checks have ended");
    }
    let alone = build_ignoring_facts(vec![build_commit_check(2, None)], &[]);
    assert!(matches!(
        decide_event(&build_polled_event(), &alone),
        EventVerdict::NoChecks
    ));
    let absent = ChecksAbsent::from_poll(&build_pull_record(), build_commit_id());
    let TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(checks)) =
        expect_trigger(&absent, &alone).reason
    else {
        panic!("no checks");
    };
    assert_eq!(
        checks.ignored,
        ["test 2"],
        "the handover without checks names it, too"
    );
    let red = build_commit_check(1, Some(CheckConclusion::Failure));
    let facts = build_ignoring_facts(vec![red, build_commit_check(2, None)], &[]);
    let repair = expect_trigger(&build_polled_event(), &facts);
    assert_eq!(repair.reason.job(), Some(Job::FixCi));
}

/// The poll that read the head may know of a push only later.
#[test]
fn checks_of_former_head_lead_to_nothing() {
    let ended = github::PullRequest {
        closed_at: Some(bootstrap::read_wall_clock()),
        ..pull_request()
    };
    let moved = github::PullRequest {
        head: "b".repeat(40).parse().unwrap(),
        ..pull_request()
    };
    let record = build_pull_record();
    for now in [moved, ended] {
        let facts_of = |checks: &[CommitCheck], progress: WorkflowRunProgress| {
            let mut facts = build_checked_facts(now.clone(), checks.to_vec());
            let runs = vec![build_commit_run("Tests", progress)];
            facts.put_workflow_runs(build_repository_name(), build_commit_id(), runs);
            facts
        };
        let check = |end| vec![build_commit_check(1, end)];
        let absent = ChecksAbsent::from_poll(&record, build_commit_id());
        let pending = ChecksPending::from_poll(&record, build_commit_id());
        let events: [(&dyn EventKind, Vec<CommitCheck>, WorkflowRunProgress); 5] = [
            (
                &build_polled_event(),
                check(Some(CheckConclusion::Success)),
                WorkflowRunProgress::Ended,
            ),
            (
                &build_polled_event(),
                check(Some(CheckConclusion::Failure)),
                WorkflowRunProgress::Ended,
            ),
            (&build_polled_event(), vec![], WorkflowRunProgress::AwaitsApproval),
            (&absent, vec![], WorkflowRunProgress::Ended),
            (&pending, check(None), WorkflowRunProgress::Ended),
        ];
        for (event, checks, progress) in events {
            let facts = facts_of(&checks, progress);
            assert_eq!(
                expect_nothing(event, &facts),
                "not the open head of the pull request"
            );
        }
    }
}

/// Class of a failed check with one log that failed on the base with another.
fn classify_log_failure(new: Option<&str>, old: Option<&str>) -> FailureClass {
    let red = |id: u64| CommitCheck {
        name: "test".to_owned(),
        output_tail: String::new(),
        ..build_commit_check(id, Some(CheckConclusion::Failure))
    };
    let mut facts = with_runs(vec![red(1)], vec![]);
    facts.put_branch_checks(build_repository_name(), "main".to_owned(), vec![red(2)]);
    facts.put_log(build_repository_name(), Box::new(red(1)), new.map(str::to_owned));
    facts.put_log(build_repository_name(), Box::new(red(2)), old.map(str::to_owned));
    find_first_class(&facts)
}

/// Class of the first failed check.
fn find_first_class(facts: &DecisionFacts) -> FailureClass {
    let checks = match expect_trigger(&build_polled_event(), facts).reason {
        TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(checks)) => checks,
        TriggerReason::JobRequested(job) => match job.about {
            domain::JobSubject::Checks(checks) => *checks,
            other => panic!("no checks: {other:?}"),
        },
        other => panic!("no checks: {other:?}"),
    };
    checks.failed[0].class
}

#[test]
fn earlier_failure_excuses_same_failures_only() {
    let old = "FAILED tests/test_cart.py::test_old - assert 1 == 2\n1 failed, 20 passed in 0.21s";
    let same = "FAILED tests/test_cart.py::test_old - assert 1 == 3\n1 failed, 21 passed in 0.35s";
    let both = "FAILED tests/test_cart.py::test_old - assert 1 == 2\nFAILED tests/test_new.py::test_new - assert 0\n2 failed";
    let other = "FAILED tests/test_new.py::test_new - assert 0\n1 failed";
    assert_eq!(
        classify_log_failure(Some(same), Some(old)),
        FailureClass::PreExisting
    );
    assert_eq!(
        classify_log_failure(Some(old), Some(both)),
        FailureClass::PreExisting
    );
    assert_eq!(classify_log_failure(Some(both), Some(old)), FailureClass::Real);
    assert_eq!(classify_log_failure(Some(other), Some(old)), FailureClass::Real);
    assert_eq!(classify_log_failure(Some(other), None), FailureClass::Real);
    // Without output on the head nothing shows that the failures are the same.
    assert_eq!(classify_log_failure(None, None), FailureClass::Real);
    assert_eq!(classify_log_failure(None, Some(old)), FailureClass::Real);
    assert_eq!(
        classify_log_failure(Some("Done"), Some("Done")),
        FailureClass::Real
    );
    let lint = "src/a.py:10:5: E501 line too long";
    let more = "src/a.py:12:5: E501 line too long\nsrc/b.py:1:1: F401 unused";
    assert_eq!(
        classify_log_failure(Some("src/a.py:99:5: E501 line too long"), Some(lint)),
        FailureClass::PreExisting
    );
    assert_eq!(classify_log_failure(Some(more), Some(lint)), FailureClass::Real);
    let mocha = |name: &str| {
        format!("  1 failing\n\n  1) cart\n       {name}:\n     AssertionError: expected 0 to equal 30\n")
    };
    assert_eq!(
        classify_log_failure(Some(&mocha("old")), Some(&mocha("old"))),
        FailureClass::PreExisting
    );
    assert_eq!(
        classify_log_failure(Some(&mocha("new")), Some(&mocha("old"))),
        FailureClass::Real
    );
}

#[test]
fn cancelled_or_silent_check_is_not_real() {
    let classify = |end: CheckConclusion, log: Option<&str>| {
        let check = CommitCheck {
            name: "test".to_owned(),
            output_tail: String::new(),
            ..build_commit_check(1, Some(end))
        };
        let mut facts = with_runs(vec![check.clone()], vec![]);
        facts.put_log(build_repository_name(), Box::new(check), log.map(str::to_owned));
        find_first_class(&facts)
    };
    let failure = "E   AssertionError: 1 != 2";
    for (end, log, class) in [
        (CheckConclusion::Failure, Some(failure), FailureClass::Real),
        (CheckConclusion::Cancelled, Some(failure), FailureClass::Inert),
        (CheckConclusion::Cancelled, None, FailureClass::Inert),
        (CheckConclusion::TimedOut, Some(failure), FailureClass::Timeout),
        (CheckConclusion::Failure, Some(" \n"), FailureClass::Infra),
        // A system without logs says nothing about its machines.
        (CheckConclusion::Failure, None, FailureClass::Real),
    ] {
        assert_eq!(classify(end, log), class, "{end:?} {log:?}");
    }
}

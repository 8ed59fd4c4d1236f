//! "Green is green": runs that await approval and checks that never end are not a success, and known failures excuse no new
//! one.

use domain::{FailureClass, SkipReason, TriggerKey, TriggerReason};
use github::{CheckConclusion, CommitCheck, CommitRun, WorkflowRunProgress};

use super::{
    EventVerdict,
    checks::{ChecksAbsent, ChecksChanged, ChecksPending},
    tests::{
        check, checked, commit, decided, follows, nothing, ours, pull_request, record, repository, ticket,
    },
};
use crate::facts::DecisionFacts;

fn run(name: &str, progress: WorkflowRunProgress) -> CommitRun {
    CommitRun {
        name: name.to_owned(),
        url: format!("https://forge.example/acme/shop/actions/runs/{}", name.len()),
        progress,
    }
}

fn with_runs(checks: Vec<CommitCheck>, runs: Vec<CommitRun>) -> DecisionFacts {
    let mut facts = checked(pull_request(), checks);
    facts.put_workflow_runs(repository(), commit(), runs);
    facts
}

fn changed() -> ChecksChanged {
    ChecksChanged::from_poll(&record(), commit())
}

fn waiting(reason: TriggerReason) -> (Vec<String>, bool, String) {
    match reason {
        TriggerReason::Skipped(SkipReason::ChecksWait {
            pull_request,
            checks,
            needs_approval,
            page,
        }) => {
            assert_eq!(pull_request, ours());
            (checks, needs_approval, page)
        }
        other => panic!("nobody is told: {other:?}"),
    }
}

#[test]
fn runs_awaiting_approval_notify_once() {
    let green = || check(1, Some(CheckConclusion::Success));
    let pending = check(2, None);
    for checks in [vec![green()], vec![], vec![green(), pending]] {
        let runs = vec![
            run("Tests", WorkflowRunProgress::AwaitsApproval),
            run("Lint", WorkflowRunProgress::AwaitsApproval),
            run("Docs", WorkflowRunProgress::Ended),
        ];
        let mut facts = with_runs(checks, runs);
        let told = follows(&changed(), &facts);
        assert_eq!(
            told.key,
            TriggerKey::new(format!("checks:acme/shop:{}:approval", commit()))
        );
        let (names, needs_approval, page) = waiting(told.reason);
        assert_eq!(
            (names, needs_approval),
            (vec!["Lint".to_owned(), "Tests".to_owned()], true)
        );
        assert_eq!(page, "https://forge.example/acme/shop/actions/runs/5");
        facts.put_known(ticket(), told.key, Some(7));
        assert!(matches!(decided(&changed(), &facts), EventVerdict::Known(7)));
    }
}

#[test]
fn active_workflow_runs_delay_green_checks() {
    let green = vec![check(1, Some(CheckConclusion::Success))];
    let facts = with_runs(green.clone(), vec![run("Tests", WorkflowRunProgress::UnderWay)]);
    assert_eq!(nothing(&changed(), &facts), "a workflow run is not complete");
    let silent = with_runs(vec![], vec![run("Tests", WorkflowRunProgress::UnderWay)]);
    let absent = ChecksAbsent::from_poll(&record(), commit());
    assert_eq!(nothing(&absent, &silent), "a workflow run is not complete");
    let ended = with_runs(green, vec![run("Tests", WorkflowRunProgress::Ended)]);
    let reason = follows(&changed(), &ended).reason;
    assert!(matches!(reason, TriggerReason::ChecksCompleted(_)), "{reason:?}");
}

#[test]
fn endless_checks_are_reported_by_name() {
    let green = check(1, Some(CheckConclusion::Success));
    let pending = ChecksPending::from_poll(&record(), commit());
    let facts = with_runs(vec![green.clone(), check(2, None)], vec![]);
    let told = follows(&pending, &facts);
    assert_eq!(
        told.key,
        TriggerKey::new(format!("checks:acme/shop:{}:pending", commit()))
    );
    assert_eq!(
        waiting(told.reason),
        (vec!["test 2".to_owned()], false, String::new())
    );
    let run = with_runs(
        vec![green.clone()],
        vec![run("Tests", WorkflowRunProgress::UnderWay)],
    );
    assert_eq!(waiting(follows(&pending, &run).reason).0, ["Tests"]);
    let ended = with_runs(vec![green], vec![]);
    assert_eq!(nothing(&pending, &ended), "the checks have ended");
}

/// Class of a failed check with one log that failed on the base with another.
fn class(new: Option<&str>, old: Option<&str>) -> FailureClass {
    let red = |id: u64| CommitCheck {
        name: "test".to_owned(),
        output_tail: String::new(),
        ..check(id, Some(CheckConclusion::Failure))
    };
    let mut facts = with_runs(vec![red(1)], vec![]);
    facts.put_branch_checks(repository(), "main".to_owned(), vec![red(2)]);
    facts.put_log(repository(), Box::new(red(1)), new.map(str::to_owned));
    facts.put_log(repository(), Box::new(red(2)), old.map(str::to_owned));
    let checks = match follows(&changed(), &facts).reason {
        TriggerReason::ChecksCompleted(checks) => checks,
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
    assert_eq!(class(Some(same), Some(old)), FailureClass::PreExisting);
    assert_eq!(class(Some(old), Some(both)), FailureClass::PreExisting);
    assert_eq!(class(Some(both), Some(old)), FailureClass::Real);
    assert_eq!(class(Some(other), Some(old)), FailureClass::Real);
    assert_eq!(class(Some(other), None), FailureClass::Real);
    assert_eq!(class(None, None), FailureClass::PreExisting);
    let lint = "src/a.py:10:5: E501 line too long";
    let more = "src/a.py:12:5: E501 line too long\nsrc/b.py:1:1: F401 unused";
    assert_eq!(
        class(Some("src/a.py:99:5: E501 line too long"), Some(lint)),
        FailureClass::PreExisting
    );
    assert_eq!(class(Some(more), Some(lint)), FailureClass::Real);
}

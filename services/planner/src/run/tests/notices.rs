//! Notices: runs of one report, and the forecast of a ticket's effort.

use domain::{
    AwaitedReview, ChecksConclusion, ChecksSummary, EffortEstimate, EffortQuartiles, FailedCheck,
    FailureClass, Job, OutboundAction, OutboundOutcome, OutboundReceipt, PullRequestEnd, PullRequestEvent,
    RepairEnd, StopReason, SuspectChanges, TriggerReason, report,
};

use super::play::{Play, build_commit_id, build_job_request, build_work_replies, pull_request};
use crate::run::RunAction;
use crate::run::machine::PhaseResult;

#[test]
fn notice_runs_finish_after_settled_report() {
    // Each field has a value, also those that a report does not store.
    let checks = |conclusion, rerun: &[u64]| {
        TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(ChecksSummary {
            pull_request: pull_request(),
            head: build_commit_id('1'),
            conclusion,
            failed: vec![failed_check()],
            unrepaired: Some(RepairEnd::NotOurs),
            rerun: rerun.to_vec(),
            asked: vec!["ada".to_owned()],
            page: "https://github.example/runs/9".to_owned(),
            suspects: SuspectChanges {
                since: Some(build_commit_id('0')),
                files: Vec::new(),
            },
            unfinished: vec!["wip".to_owned()],
            ignored: vec!["coverage".to_owned()],
        }))
    };
    let merged = TriggerReason::from(PullRequestEvent::Merged(PullRequestEnd {
        pull_request: pull_request(),
        by: "ada".to_owned(),
        moved_to: None,
    }));
    let closed = TriggerReason::from(PullRequestEvent::Closed(PullRequestEnd {
        pull_request: pull_request(),
        by: "ada".to_owned(),
        moved_to: None,
    }));
    let awaited = TriggerReason::from(PullRequestEvent::ReviewAwaited(AwaitedReview {
        pull_request: pull_request(),
        reviewers: vec!["rita".to_owned()],
        since: domain::Timestamp::default(),
    }));
    let cases = [
        (checks(ChecksConclusion::Success, &[]), Job::MarkReady),
        (checks(ChecksConclusion::Absent, &[]), Job::MarkReady),
        (checks(ChecksConclusion::Failure, &[]), Job::FixCi),
        (checks(ChecksConclusion::Failure, &[9]), Job::FixCi),
        (merged, Job::Finish),
        (closed, Job::Finish),
        (awaited, Job::Remind),
    ];
    for (reason, job) in cases {
        let mut play = Play::new(reason);
        assert_eq!(play.state.job(), job);
        assert_eq!(play.drive(), RunAction::Wait);
        play.settle(OutboundOutcome::Done(OutboundReceipt::Told));
        assert_eq!(play.drive(), RunAction::Rest);
        assert_eq!(play.reason(), &StopReason::Completed);
    }
}

fn failed_check() -> FailedCheck {
    FailedCheck {
        name: "unit".to_owned(),
        url: "https://github.example/runs/9/job/1".to_owned(),
        log_tail: "No space left on device".to_owned(),
        class: FailureClass::Infra,
        step: "pytest".to_owned(),
        command: "pytest\npytest --slow".to_owned(),
        log: "write: No space left on device".to_owned(),
    }
}

#[test]
fn unsupported_job_is_reported() {
    let mut play = Play::implement(build_job_request(Job::Review), []);
    assert_eq!(play.drive(), RunAction::Rest);
    assert!(matches!(
        play.last_request(),
        OutboundAction::RunStopped(report::RunStopped { job: Job::Review, .. })
    ));
}

fn count_forecasts(play: &Play) -> usize {
    let asked = play.state.delivery().reports().iter();
    asked
        .filter(|report| matches!(report.request, OutboundAction::EffortForecast(_)))
        .count()
}

#[test]
fn forecast_is_posted_once_before_work() {
    let middle = |median| EffortQuartiles {
        low: median - 1,
        median,
        high: median + 1,
    };
    let forecast = EffortEstimate {
        runs: 3,
        busy_ms: middle(60_000),
        cost_micros: None,
        lines: middle(30),
    };
    let mut play = Play::implement(build_job_request(Job::Implement), build_work_replies());
    play.forecast = Some(forecast);
    play.until_model_call();
    assert_eq!(
        (count_forecasts(&play), play.state.conversation().turn_count()),
        (1, 1)
    );
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(count_forecasts(&play), 1);
}

#[test]
fn forecast_without_history_is_omitted() {
    let mut play = Play::implement(build_job_request(Job::Implement), build_work_replies());
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(
        (count_forecasts(&play), play.state.budget().forecast()),
        (0, PhaseResult::Missing)
    );
}

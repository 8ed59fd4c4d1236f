//! Notices: runs of one report.

use domain::{
    AwaitedReview, ChecksConclusion, ChecksSummary, Job, OutboundAction, OutboundOutcome, OutboundReceipt,
    PullRequestEnd, PullRequestEvent, StopReason, TriggerReason, report,
};

use super::play::{Play, build_commit_id, build_job_request, pull_request};
use crate::run::RunAction;

#[test]
fn notice_runs_finish_after_settled_report() {
    let checks = |conclusion| {
        TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(ChecksSummary::new(
            pull_request(),
            build_commit_id('1'),
            conclusion,
        )))
    };
    let merged = TriggerReason::from(PullRequestEvent::Merged(PullRequestEnd {
        pull_request: pull_request(),
        by: "ada".to_owned(),
    }));
    let closed = TriggerReason::from(PullRequestEvent::Closed(PullRequestEnd {
        pull_request: pull_request(),
        by: "ada".to_owned(),
    }));
    let awaited = TriggerReason::from(PullRequestEvent::ReviewAwaited(AwaitedReview {
        pull_request: pull_request(),
        reviewers: vec!["rita".to_owned()],
        since: domain::Timestamp::default(),
    }));
    let cases = [
        (checks(ChecksConclusion::Success), Job::MarkReady),
        (checks(ChecksConclusion::Absent), Job::MarkReady),
        (checks(ChecksConclusion::Failure), Job::FixCi),
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

#[test]
fn unsupported_job_is_reported() {
    let mut play = Play::implement(build_job_request(Job::Review), []);
    assert_eq!(play.drive(), RunAction::Rest);
    assert!(matches!(
        play.last_request(),
        OutboundAction::RunStopped(report::RunStopped { job: Job::Review, .. })
    ));
}

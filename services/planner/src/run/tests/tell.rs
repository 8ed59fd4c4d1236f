//! Notices: runs of one report.

use domain::{
    ChecksSummary, Conclusion, Job, Reason, Receipt, ReportOutcome, ReportRequest, StopReason, report,
};

use super::play::{Play, commit, pull_request, request};
use crate::run::Action;

#[test]
fn notice_runs_finish_after_settled_report() {
    let checks = |conclusion| {
        Reason::ChecksCompleted(ChecksSummary {
            pull_request: pull_request(),
            head: commit('1'),
            conclusion,
            failed: vec![],
            unrepaired: None,
            rerun: Vec::new(),
            asked: Vec::new(),
            page: String::new(),
            suspects: domain::Suspects::default(),
        })
    };
    let merged = Reason::PullRequestMerged {
        pull_request: pull_request(),
        by: "ada".to_owned(),
    };
    let closed = Reason::PullRequestClosed {
        pull_request: pull_request(),
        by: "ada".to_owned(),
    };
    let awaited = Reason::ReviewAwaited {
        pull_request: pull_request(),
        reviewers: vec!["rita".to_owned()],
        since: domain::Timestamp::default(),
    };
    let cases = [
        (checks(Conclusion::Success), Job::MarkReady),
        (checks(Conclusion::Absent), Job::MarkReady),
        (checks(Conclusion::Failure), Job::FixCi),
        (merged, Job::Finish),
        (closed, Job::Finish),
        (awaited, Job::Remind),
    ];
    for (reason, job) in cases {
        let mut play = Play::new(reason);
        assert_eq!(play.state.job(), job);
        assert_eq!(play.drive(), Action::Wait);
        play.settle(ReportOutcome::Done(Receipt::Told));
        assert_eq!(play.drive(), Action::Rest);
        assert_eq!(play.reason(), &StopReason::Completed);
    }
}

#[test]
fn unsupported_job_is_reported() {
    let mut play = Play::implement(request(Job::Review), []);
    assert_eq!(play.drive(), Action::Rest);
    assert!(matches!(
        play.last_request(),
        ReportRequest::RunStopped(report::RunStopped { job: Job::Review, .. })
    ));
}

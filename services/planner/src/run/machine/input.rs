//! What a run works on.

use domain::{Conclusion, Job, JobRequest, Reason, ReportRequest, Trigger, report};

/// What a run works on.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// A job that somebody asked for.
    Request(Box<JobRequest>),
    /// Something that happened to a pull request: one report, then the end.
    Notice(Job, Box<ReportRequest>),
}

impl Input {
    /// What a trigger opens a run for; `None` when it opens none.
    pub(crate) fn of(trigger: &Trigger) -> Option<Self> {
        let tell = |job, request| Some(Self::Notice(job, Box::new(request)));
        match &trigger.reason {
            Reason::JobRequested(request) => Some(Self::Request(request.clone())),
            Reason::ChecksCompleted(checks) => {
                let (pull_request, head) = (checks.pull_request.clone(), checks.head.clone());
                match checks.conclusion {
                    Conclusion::Success => tell(
                        Job::MarkReady,
                        ReportRequest::ChecksPassed(report::ChecksPassed { pull_request, head }),
                    ),
                    Conclusion::Absent => tell(
                        Job::MarkReady,
                        ReportRequest::ChecksAbsent(report::ChecksAbsent { pull_request, head }),
                    ),
                    Conclusion::Failure => tell(
                        Job::FixCi,
                        ReportRequest::ChecksFailed(report::ChecksFailed {
                            pull_request,
                            head,
                            failed: checks.failed.clone(),
                            unrepaired: checks.unrepaired,
                        }),
                    ),
                }
            }
            Reason::HeadMoved {
                pull_request,
                head,
                by,
            } => tell(
                Job::BackToDraft,
                ReportRequest::PushedByOthers(report::PushedByOthers {
                    pull_request: pull_request.clone(),
                    head: head.clone(),
                    by: by.clone(),
                }),
            ),
            Reason::PullRequestMerged { pull_request, by } => tell(
                Job::Finish,
                ReportRequest::Merged(report::Merged {
                    pull_request: pull_request.clone(),
                    by: by.clone(),
                }),
            ),
            Reason::MergedElsewhere { pull_request, by } => tell(
                Job::Finish,
                ReportRequest::MergedElsewhere(report::MergedElsewhere {
                    pull_request: pull_request.clone(),
                    by: by.clone(),
                }),
            ),
            Reason::PullRequestReopened {
                pull_request,
                head,
                by,
            } => tell(
                Job::Reopen,
                ReportRequest::Reopened(report::Reopened {
                    pull_request: pull_request.clone(),
                    head: head.clone(),
                    by: by.clone(),
                }),
            ),
            Reason::PullRequestClosed { pull_request, by } => tell(
                Job::Finish,
                ReportRequest::Closed(report::Closed {
                    pull_request: pull_request.clone(),
                    by: by.clone(),
                }),
            ),
            Reason::Skipped(_)
            | Reason::StopRequested { .. }
            | Reason::RetryRequested
            | Reason::Decided(_)
            | Reason::ReportSettled(_)
            | Reason::NewsArrived(_) => None,
        }
    }
}

//! Input of a run, from its trigger.

use domain::{
    About, ChecksSummary, Conclusion, Job, JobRequest, Reason, ReportRequest, Trigger, report,
    report::FailedOn,
};

/// Input of a run, from its trigger.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// Job that a trigger requests.
    Request(Box<JobRequest>),
    /// Event of a pull request: one report, then the end.
    Notice(Job, Box<ReportRequest>),
}

impl Input {
    /// Returns the failed commit, if the run repairs checks.
    pub(crate) fn failed_on(&self) -> Option<FailedOn> {
        match self {
            Self::Request(request) => match &request.about {
                About::Checks(checks) => Some(FailedOn {
                    head: checks.head.clone(),
                    page: checks.page.clone(),
                }),
                _ => None,
            },
            Self::Notice(..) => None,
        }
    }

    /// Returns the input from a trigger; `None` if it opens no run.
    pub(crate) fn of(trigger: &Trigger) -> Option<Self> {
        let tell = |job, request| Some(Self::Notice(job, Box::new(request)));
        match &trigger.reason {
            Reason::JobRequested(request) => {
                Some(only_left(request).unwrap_or_else(|| Self::Request(request.clone())))
            }
            Reason::ChecksCompleted(checks) => Some(of_checks(checks)),
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
            Reason::ReviewAwaited {
                pull_request,
                reviewers,
                since,
            } => tell(
                Job::Remind,
                ReportRequest::ReviewAwaited(report::ReviewAwaited {
                    pull_request: pull_request.clone(),
                    reviewers: reviewers.clone(),
                    since: *since,
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
            | Reason::ReviewWithdrawn { .. }
            | Reason::CostAsked { .. }
            | Reason::StopRequested { .. }
            | Reason::RetryRequested
            | Reason::Decided(_)
            | Reason::ReportSettled(_)
            | Reason::NewsArrived(_) => None,
        }
    }
}

/// Returns the notice for a review whose threads are all left to people: it needs no work.
fn only_left(request: &JobRequest) -> Option<Input> {
    let round = request.about.round()?;
    let left = round.only_left()?;
    let told = report::ReviewAddressed {
        pull_request: round.pull_request.clone(),
        reviewer: round.author.clone(),
        commit: None,
        summary: String::new(),
        replies: Vec::new(),
        left: Some(left.clone()),
        deciders: round.deciders.clone(),
    };
    Some(Input::Notice(request.job, Box::new(told.into())))
}

/// Returns the notice about completed checks.
fn of_checks(checks: &ChecksSummary) -> Input {
    let (pull_request, head) = (checks.pull_request.clone(), checks.head.clone());
    let page = checks.page.clone();
    let failed = || checks.failed.clone();
    let (job, request) = match checks.conclusion {
        Conclusion::Success => (
            Job::MarkReady,
            report::ChecksPassed {
                pull_request,
                head,
                page,
            }
            .into(),
        ),
        Conclusion::Absent => (Job::MarkReady, report::ChecksAbsent { pull_request, head }.into()),
        // Jobs that only need another run are repeated before anything is repaired.
        Conclusion::Failure if !checks.rerun.is_empty() => {
            let (failed, runs) = (failed(), checks.rerun.clone());
            let again = report::RerunChecks {
                pull_request,
                head,
                failed,
                runs,
            };
            (Job::FixCi, again.into())
        }
        Conclusion::Failure => {
            let told = report::ChecksFailed {
                pull_request,
                head,
                failed: failed(),
                unrepaired: checks.unrepaired,
                asked: checks.asked.clone(),
                page,
            };
            (Job::FixCi, told.into())
        }
    };
    Input::Notice(job, Box::new(request))
}

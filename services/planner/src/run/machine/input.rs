//! Input of a run, from its trigger.

use domain::{
    ChecksConclusion, ChecksSummary, Job, JobRequest, JobSubject, OutboundAction, Trigger, TriggerReason,
    report, report::FailedCommit,
};

/// Input of a run, from its trigger.
#[derive(Clone, Debug)]
pub(crate) enum RunInput {
    /// Job that a trigger requests.
    Request(Box<JobRequest>),
    /// Event of a pull request: one report, then the end.
    Notice(Job, Box<OutboundAction>),
}

impl RunInput {
    /// Returns the failed commit, if the run repairs checks.
    pub(crate) fn failed_on(&self) -> Option<FailedCommit> {
        match self {
            Self::Request(request) => match &request.about {
                JobSubject::Checks(checks) => Some(FailedCommit {
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
            TriggerReason::JobRequested(request) => {
                Some(notice_of_review(request).unwrap_or_else(|| Self::Request(request.clone())))
            }
            TriggerReason::ChecksCompleted(checks) => Some(notice_of_checks(checks)),
            TriggerReason::HeadMoved {
                pull_request,
                head,
                by,
            } => tell(
                Job::BackToDraft,
                OutboundAction::PushedByOthers(report::PushedByOthers {
                    pull_request: pull_request.clone(),
                    head: head.clone(),
                    by: by.clone(),
                }),
            ),
            TriggerReason::PullRequestMerged { pull_request, by } => tell(
                Job::Finish,
                OutboundAction::Merged(report::PullRequestMerged {
                    pull_request: pull_request.clone(),
                    by: by.clone(),
                }),
            ),
            TriggerReason::MergedElsewhere { pull_request, by } => tell(
                Job::Finish,
                OutboundAction::MergedElsewhere(report::OtherPullRequestMerged {
                    pull_request: pull_request.clone(),
                    by: by.clone(),
                }),
            ),
            TriggerReason::PullRequestReopened {
                pull_request,
                head,
                by,
            } => tell(
                Job::Reopen,
                OutboundAction::Reopened(report::PullRequestReopened {
                    pull_request: pull_request.clone(),
                    head: head.clone(),
                    by: by.clone(),
                }),
            ),
            TriggerReason::ReviewAwaited {
                pull_request,
                reviewers,
                since,
            } => tell(
                Job::Remind,
                OutboundAction::ReviewAwaited(report::ReviewAwaited {
                    pull_request: pull_request.clone(),
                    reviewers: reviewers.clone(),
                    since: *since,
                }),
            ),
            TriggerReason::PullRequestClosed { pull_request, by } => tell(
                Job::Finish,
                OutboundAction::Closed(report::PullRequestClosed {
                    pull_request: pull_request.clone(),
                    by: by.clone(),
                }),
            ),
            TriggerReason::Skipped(_)
            | TriggerReason::ReviewWithdrawn { .. }
            | TriggerReason::CostAsked { .. }
            | TriggerReason::StopRequested { .. }
            | TriggerReason::RetryRequested
            | TriggerReason::Decided(_)
            | TriggerReason::ReportSettled(_)
            | TriggerReason::NewsArrived(_) => None,
        }
    }
}

/// Returns the notice for a review whose threads are all left to people: it needs no work.
fn notice_of_review(request: &JobRequest) -> Option<RunInput> {
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
    Some(RunInput::Notice(request.job, Box::new(told.into())))
}

/// Returns the notice about completed checks.
fn notice_of_checks(checks: &ChecksSummary) -> RunInput {
    let (pull_request, head) = (checks.pull_request.clone(), checks.head.clone());
    let page = checks.page.clone();
    let failed = || checks.failed.clone();
    let (job, request) = match checks.conclusion {
        ChecksConclusion::Success => (
            Job::MarkReady,
            report::ChecksPassed {
                pull_request,
                head,
                page,
            }
            .into(),
        ),
        ChecksConclusion::Absent => (
            Job::MarkReady,
            report::ChecksMissing { pull_request, head }.into(),
        ),
        // Jobs that only need another run are repeated before anything is repaired.
        ChecksConclusion::Failure if !checks.rerun.is_empty() => {
            let (failed, runs) = (failed(), checks.rerun.clone());
            let again = report::ChecksRerun {
                pull_request,
                head,
                failed,
                runs,
            };
            (Job::FixCi, again.into())
        }
        ChecksConclusion::Failure => {
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
    RunInput::Notice(job, Box::new(request))
}

//! Input of a run, from its trigger.

use domain::{
    Job, JobRequest, JobSubject, OmittedAttachment, OutboundAction, Trigger, TriggerReason, list_omitted,
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

    /// Returns the attachments that new work does without. Later jobs have the same ones, which the ticket names
    /// already.
    pub(crate) fn omitted_attachments(&self) -> Vec<OmittedAttachment> {
        match self {
            Self::Request(request) if request.job == Job::Implement => {
                list_omitted(&request.text.attachments)
            }
            Self::Request(_) | Self::Notice(..) => Vec::new(),
        }
    }

    /// Returns the input from a trigger; `None` if it opens no run.
    pub(crate) fn of(trigger: &Trigger) -> Option<Self> {
        match &trigger.reason {
            TriggerReason::JobRequested(request) => {
                Some(notice_of_review(request).unwrap_or_else(|| Self::Request(request.clone())))
            }
            TriggerReason::PullRequest(event) => {
                Some(Self::Notice(event.job(), Box::new(event.clone().into())))
            }
            TriggerReason::Skipped(_)
            | TriggerReason::ReviewWithdrawn { .. }
            | TriggerReason::TicketLeft(_)
            | TriggerReason::CostAsked { .. }
            | TriggerReason::HelpAsked { .. }
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
    let addressed = report::ReviewAddressed {
        pull_request: round.pull_request.clone(),
        reviewer: round.author.clone(),
        commit: None,
        summary: String::new(),
        replies: Vec::new(),
        left: Some(left.clone()),
        deciders: round.deciders.clone(),
    };
    Some(RunInput::Notice(request.job, Box::new(addressed.into())))
}

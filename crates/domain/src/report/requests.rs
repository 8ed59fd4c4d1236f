//! What the reporter can be asked to do: one type each, and the one list of them.

use serde::{Deserialize, Serialize};

use super::{
    Proposal, PushBranch,
    issues::{Discussed, OpenIssues},
    patience::{RerunChecks, ReviewAwaited},
    progress::Progressed,
    pull_requests::{
        ChecksAbsent, ChecksFailed, ChecksPassed, ChecksRepaired, Closed, Merged, MergedElsewhere,
        OpenPullRequest, PullRequestReviewed, PushedByOthers, Reopened, ReviewAddressed, WorkDelivered,
    },
    request::Request,
    tickets::{
        CostTold, EffortForecast, PlanProposed, Quarantined, QuestionAnswered, QuestionAsked, React,
        RetryScheduled, RunStopped, Unreadable, WorkStarted,
    },
    triage::Triaged,
};
use crate::{CommitId, Job, RepositoryName, SkipReason};

/// The enum of all requests, and the way from each to what it says of itself.
macro_rules! requests {
    ($($(#[$doc:meta])* $variant:ident($type:ty),)+) => {
        /// What the reporter is asked to do.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        pub enum ReportRequest {
            $($(#[$doc])* $variant($type),)+
        }

        impl ReportRequest {
            fn as_request(&self) -> &dyn Request {
                match self {
                    $(Self::$variant(request) => request,)+
                }
            }
        }

        $(impl From<$type> for ReportRequest {
            fn from(request: $type) -> Self {
                Self::$variant(request)
            }
        })+
    };
}

requests! {
    /// Work starts: in-progress status, status comment.
    WorkStarted(WorkStarted),
    /// Show in the status comment how far the run is.
    Progressed(Progressed),
    /// Show with a reaction that something was seen, or that it is done.
    React(React),
    /// Work of this kind was done before: say what to expect.
    EffortForecast(EffortForecast),
    /// Import the pack, check it, push the branch.
    PushBranch(PushBranch),
    /// Push the branch of a complete change, and close the ticket: the rules want no pull request.
    WorkDelivered(WorkDelivered),
    /// Open the draft pull request, or adopt the open one of the same branch; link it on the ticket.
    OpenPullRequest(OpenPullRequest),
    /// CI is green: mark the pull request ready, tell the ticket, hand over.
    ChecksPassed(ChecksPassed),
    /// No check reports: mark the pull request ready unless one is configured to, tell the ticket.
    ChecksAbsent(ChecksAbsent),
    /// CI is red: tell the ticket, keep the draft.
    ChecksFailed(ChecksFailed),
    /// CI is red for reasons outside the change: run the failed jobs again, tell the ticket, keep the draft.
    RerunChecks(RerunChecks),
    /// Red checks were repaired: tell the ticket.
    ChecksRepaired(ChecksRepaired),
    /// A review was addressed: reply in its threads, and hand the pull request over once more.
    ReviewAddressed(ReviewAddressed),
    /// A pull request of ours waits for a review: remind those who are asked for it.
    ReviewAwaited(ReviewAwaited),
    /// A question was answered: tell whoever asked, where they asked.
    QuestionAnswered(QuestionAnswered),
    /// Somebody asked what the ticket's runs have taken: say it where they asked.
    CostTold(CostTold),
    /// A pull request of somebody was reviewed: submit the review.
    PullRequestReviewed(PullRequestReviewed),
    /// A person pushed to the branch of a pull request of ours: it is a draft until its checks pass.
    PushedByOthers(PushedByOthers),
    /// A person merged: move the ticket to done, say so.
    Merged(Merged),
    /// A pull request of somebody else was merged that names the ticket: move the ticket to done, say so.
    MergedElsewhere(MergedElsewhere),
    /// A person opened the pull request again: follow it once more, say so.
    Reopened(Reopened),
    /// A person closed the pull request unmerged: say so.
    Closed(Closed),
    /// A run waits for a person's decision about this push: import and check it, show what it changes, say how to decide.
    DecisionNeeded(Proposal),
    /// A run waits for a person's decision about its plan: show it, say how to decide.
    PlanProposed(PlanProposed),
    /// The model needs an answer: ask on the ticket.
    QuestionAsked(QuestionAsked),
    /// A run ended without reaching its goal: say why and what to do.
    RunStopped(RunStopped),
    /// A run failed for a reason that may pass and is tried again later: say when.
    RetryScheduled(RetryScheduled),
    /// The ticket's work brought planners down again and again and is set aside: say so, and how to retry.
    Quarantined(Quarantined),
    /// A record about the ticket could not be read and was set aside: say so; everything else goes on.
    Unreadable(Unreadable),
    /// A ticket was triaged: set what was chosen for it, and say which other one asks for the same.
    #[serde(rename = "add_labels")]
    Triaged(Triaged),
    /// Issues were planned: open them, link them, say which.
    OpenIssues(OpenIssues),
    /// Something was done in a discussion: say it there, and close it when that was asked for.
    Discussed(Discussed),
    /// Do nothing, and give back what would be done for other requests.
    Rehearse(Rehearse),
    /// Nothing is done: say why.
    Skipped(SkipReason),
}

impl ReportRequest {
    /// The repository whose rules govern it; absent: the ticket's.
    pub fn repository(&self) -> Option<&RepositoryName> {
        self.as_request().repository()
    }

    /// The commit or plan that a person is asked to decide on.
    pub fn asks_about(&self) -> Option<&CommitId> {
        self.as_request().asks_about()
    }

    /// Whether its outcome is the result of a tool call of the model's.
    pub fn answers_call(&self) -> bool {
        self.as_request().answers_call()
    }

    /// What is asked for, on one line, for the people who read journals.
    pub fn summary(&self) -> String {
        self.as_request().summary()
    }
}

/// Do nothing, and give back what would be done for these requests, one after another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehearse {
    /// The kind of work that would ask for them.
    pub job: Job,
    /// The repository whose rules govern them.
    pub repository: RepositoryName,
    /// What would be asked for, with what stands for a model's answers and for commits.
    pub requests: Vec<ReportRequest>,
}

impl Request for Rehearse {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        format!("tell what {} would write, and write nothing", self.job)
    }
}

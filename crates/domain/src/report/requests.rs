//! Requests to the reporter: one type per request, and the enum of all of them.

use serde::{Deserialize, Serialize};

use super::{
    BranchPush, PushProposal,
    issues::{DiscussionResult, OpenIssues},
    progress::ProgressUpdate,
    pull_requests::{
        ChecksFailed, ChecksMissing, ChecksPassed, ChecksRepaired, OtherPullRequestMerged, PullRequestClosed,
        PullRequestMerged, PullRequestOpening, PullRequestReopened, PullRequestReviewed, PushedByOthers,
        ReviewAddressed, WorkDelivered,
    },
    reminders::{ChecksRerun, ReviewAwaited},
    request::RequestProperties,
    tickets::{
        CostReply, EffortForecast, PlanProposed, QuestionAnswered, QuestionAsked, ReactionRequest,
        RetryScheduled, RunStopped, TicketQuarantined, UnreadableRecordNotice, WorkStarted,
    },
    triage::TicketTriaged,
};
use crate::{CommitId, Job, RepositoryName, SkipReason};

/// Defines the enum of all requests with the conversion of each variant to its properties.
macro_rules! requests {
    ($($(#[$doc:meta])* $variant:ident($type:ty),)+) => {
        /// Effects that a planner requests from the reporter.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        pub enum OutboundAction {
            $($(#[$doc])* $variant($type),)+
        }

        impl OutboundAction {
            fn as_request(&self) -> &dyn RequestProperties {
                match self {
                    $(Self::$variant(request) => request,)+
                }
            }
        }

        $(impl From<$type> for OutboundAction {
            fn from(request: $type) -> Self {
                Self::$variant(request)
            }
        })+
    };
}

requests! {
    /// Work starts: set the in-progress status, write the status comment.
    WorkStarted(WorkStarted),
    /// Progress of the run for the status comment.
    Progressed(ProgressUpdate),
    /// Reaction for a text that was read or whose request is done.
    React(ReactionRequest),
    /// Estimate for work of a class that was done before.
    EffortForecast(EffortForecast),
    /// Pack to import and check, and branch to push.
    PushBranch(BranchPush),
    /// Complete change without a pull request by the rules: push the branch, close the ticket.
    WorkDelivered(WorkDelivered),
    /// Draft pull request to open, or open one of the same branch to adopt, and to link on the ticket.
    OpenPullRequest(PullRequestOpening),
    /// Passed checks: mark the pull request ready, notify the ticket, request the reviews.
    ChecksPassed(ChecksPassed),
    /// Missing checks: mark the pull request ready unless one is configured, notify the ticket.
    ChecksAbsent(ChecksMissing),
    /// Failed checks: notify the ticket, keep the draft.
    ChecksFailed(ChecksFailed),
    /// Failures outside of the change: run the failed jobs again, notify the ticket, keep the draft.
    RerunChecks(ChecksRerun),
    /// Repaired checks: notify the ticket.
    ChecksRepaired(ChecksRepaired),
    /// Addressed review: reply in its threads, request the review again.
    ReviewAddressed(ReviewAddressed),
    /// Pending review of our pull request: remind the reviewers.
    ReviewAwaited(ReviewAwaited),
    /// Answered question: reply to its author where it was asked.
    QuestionAnswered(QuestionAnswered),
    /// Requested cost of the ticket's runs: reply where it was asked.
    CostTold(CostReply),
    /// Review of another author's pull request to submit.
    PullRequestReviewed(PullRequestReviewed),
    /// Push of a person to our pull request: convert it to a draft until its checks pass.
    PushedByOthers(PushedByOthers),
    /// Merge of our pull request: move the ticket to done, notify it.
    Merged(PullRequestMerged),
    /// Merge of another author's pull request that names the ticket: move the ticket to done, notify it.
    MergedElsewhere(OtherPullRequestMerged),
    /// Reopened pull request: follow it again, notify the ticket.
    Reopened(PullRequestReopened),
    /// Pull request that a person closed without a merge: notify the ticket.
    Closed(PullRequestClosed),
    /// Push that waits for a person's decision: import and check it, show the change, explain how to decide.
    DecisionNeeded(PushProposal),
    /// Plan that waits for a person's decision: show it, explain how to decide.
    PlanProposed(PlanProposed),
    /// Questions of the model: ask them on the ticket.
    QuestionAsked(QuestionAsked),
    /// Run that ended without reaching its goal: give the reason and the next step.
    RunStopped(RunStopped),
    /// Run that retries later after a transient failure: give the time.
    RetryScheduled(RetryScheduled),
    /// Ticket whose work crashed planners repeatedly: explain the quarantine and the way to retry.
    Quarantined(TicketQuarantined),
    /// Record about the ticket that is unreadable and was dead-lettered: notify the ticket; all other work
    /// continues.
    Unreadable(UnreadableRecordNotice),
    /// Triaged ticket: set the chosen fields, and name a duplicate.
    #[serde(rename = "add_labels")]
    Triaged(TicketTriaged),
    /// Planned issues: open, link and list them.
    OpenIssues(OpenIssues),
    /// Completed task in a discussion: post the result, and close the discussion if requested.
    Discussed(DiscussionResult),
    /// Rehearsal: perform no effect, and return the effects of other requests.
    Rehearse(RehearsalRequest),
    /// Skipped ticket: give the reason.
    Skipped(SkipReason),
}

impl OutboundAction {
    /// The repository whose rules govern it; absent: the ticket's.
    pub fn repository(&self) -> Option<&RepositoryName> {
        self.as_request().repository()
    }

    /// The commit or plan that a person is asked to decide about.
    pub fn asks_about(&self) -> Option<&CommitId> {
        self.as_request().asks_about()
    }

    /// Returns true when its outcome is the result of a tool call of the model.
    pub fn answers_call(&self) -> bool {
        self.as_request().answers_call()
    }

    /// Summary on one line, for readers of journals.
    pub fn summary(&self) -> String {
        self.as_request().summary()
    }
}

/// Request to perform no effect and to return the effects of these requests in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RehearsalRequest {
    /// Job that would make the requests.
    pub job: Job,
    /// Repository whose rules apply.
    pub repository: RepositoryName,
    /// Requests, with placeholders for commits and for replies of the model.
    pub requests: Vec<OutboundAction>,
}

impl RequestProperties for RehearsalRequest {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        format!("tell what {} would write, and write nothing", self.job)
    }
}

//! Requests to the reporter: one type per request, and the enum of all of them.

use serde::{Deserialize, Serialize};

use super::{
    BranchPush, PushProposal, RequestProperties,
    pull_requests::{
        ChecksRepaired, ConflictResolved, PullRequestOpening, PullRequestReviewed, ReviewAddressed,
        WorkDelivered,
    },
    tickets::{
        CostReply, DiscussionResult, EffortForecast, HelpReply, OpenIssues, PlanProposed, ProgressUpdate,
        QuestionAnswered, QuestionAsked, ReactionRequest, RetryScheduled, RunStopped, TicketQuarantined,
        TicketTriaged, UnreadableRecordNotice, WorkStarted,
    },
};
use crate::{
    identity::{commit::CommitId, repository::RepositoryName},
    journal::stop::TicketDeparture,
    trigger::{
        job::Job,
        pull_request_event::{
            ChecksForm, FailedChecks, MissingChecks, PassedChecks, PullRequestEvent, RepeatedChecks,
            with_stored_events,
        },
        skip::SkipReason,
    },
};

/// Defines the enum of all requests, the conversion of each variant to its properties, and the stored form, in
/// which each event of a pull request has a name of its own.
macro_rules! requests {
    (
        events { $($event:ident($data:ty): $reason:literal, $name:literal;)+ }
        $($(#[$doc:meta])* $variant:ident($type:ty) $(as $stored:literal)?,)+
    ) => {
        /// Effects that a planner requests from the reporter.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(from = "StoredAction", into = "StoredAction")]
        pub enum OutboundAction {
            /// Event of a pull request, whose effects the reporter knows.
            PullRequest(PullRequestEvent),
            $($(#[$doc])* $variant($type),)+
        }

        impl OutboundAction {
            fn as_request(&self) -> &dyn RequestProperties {
                match self {
                    Self::PullRequest(event) => event,
                    $(Self::$variant(request) => request,)+
                }
            }
        }

        impl From<PullRequestEvent> for OutboundAction {
            fn from(event: PullRequestEvent) -> Self {
                Self::PullRequest(event)
            }
        }

        $(impl From<$type> for OutboundAction {
            fn from(request: $type) -> Self {
                Self::$variant(request)
            }
        })+

        #[derive(Serialize, Deserialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum StoredAction {
            ChecksPassed(PassedChecks),
            ChecksAbsent(MissingChecks),
            ChecksFailed(FailedChecks),
            RerunChecks(RepeatedChecks),
            $(#[serde(rename = $name)] $event($data),)+
            $($(#[serde(rename = $stored)])? $variant($type),)+
        }

        impl From<StoredAction> for OutboundAction {
            fn from(stored: StoredAction) -> Self {
                match stored {
                    StoredAction::ChecksPassed(checks) => PullRequestEvent::ChecksCompleted(checks.into()).into(),
                    StoredAction::ChecksAbsent(checks) => PullRequestEvent::ChecksCompleted(checks.into()).into(),
                    StoredAction::ChecksFailed(checks) => PullRequestEvent::ChecksCompleted(checks.into()).into(),
                    StoredAction::RerunChecks(checks) => PullRequestEvent::ChecksCompleted(checks.into()).into(),
                    $(StoredAction::$event(data) => PullRequestEvent::$event(data).into(),)+
                    $(StoredAction::$variant(request) => Self::$variant(request),)+
                }
            }
        }

        impl From<OutboundAction> for StoredAction {
            fn from(action: OutboundAction) -> Self {
                match action {
                    OutboundAction::PullRequest(event) => match event {
                        PullRequestEvent::ChecksCompleted(checks) => match ChecksForm::from(checks) {
                            ChecksForm::Passed(checks) => Self::ChecksPassed(checks),
                            ChecksForm::Missing(checks) => Self::ChecksAbsent(checks),
                            ChecksForm::Failed(checks) => Self::ChecksFailed(checks),
                            ChecksForm::Repeated(checks) => Self::RerunChecks(checks),
                        },
                        $(PullRequestEvent::$event(data) => Self::$event(data),)+
                    },
                    $(OutboundAction::$variant(request) => Self::$variant(request),)+
                }
            }
        }
    };
}

with_stored_events! { requests {
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
    /// Repaired checks: notify the ticket.
    ChecksRepaired(ChecksRepaired),
    /// Resolved conflict with the base branch: notify the ticket.
    ConflictResolved(ConflictResolved),
    /// Addressed review: reply in its threads, request the review again.
    ReviewAddressed(ReviewAddressed),
    /// Answered question: reply to its author where it was asked.
    QuestionAnswered(QuestionAnswered),
    /// Requested cost of the ticket's runs: reply where it was asked.
    CostTold(CostReply),
    /// Requested help: reply with the ways to steer the work where it was asked.
    HelpTold(HelpReply),
    /// Review of another author's pull request to submit.
    PullRequestReviewed(PullRequestReviewed),
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
    Triaged(TicketTriaged) as "add_labels",
    /// Planned issues: open, link and list them.
    OpenIssues(OpenIssues),
    /// Completed task in a discussion: post the result, and close the discussion if requested.
    Discussed(DiscussionResult),
    /// Rehearsal: perform no effect, and return the effects of other requests.
    Rehearse(RehearsalRequest),
    /// Skipped ticket: give the reason.
    Skipped(SkipReason),
    /// Ticket that left its place: give the place and the next step on its pull request.
    TicketLeft(TicketDeparture),
} }

impl OutboundAction {
    /// The repository whose rules govern it; absent: the ticket's.
    pub fn repository(&self) -> Option<&RepositoryName> {
        self.as_request().repository()
    }

    /// The commit or plan that a person is asked to decide about.
    pub fn asks_about(&self) -> Option<&CommitId> {
        self.as_request().asks_about()
    }

    /// The push that it contains, with the pack of the commits.
    pub fn push(&self) -> Option<&BranchPush> {
        self.as_request().push()
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

#[cfg(test)]
mod tests {
    use crate::{journal::record_format::decode_stored_record, outbound::report::OutboundRequest};

    #[test]
    fn stored_request_with_pack_has_push() {
        let lines = include_str!("../../../tests/stored/v1/report.jsonl").lines();
        for line in lines {
            let OutboundRequest { request, .. } = decode_stored_record(line.as_bytes()).unwrap();
            let stored = serde_json::to_value(&request).unwrap();
            let push = request
                .push()
                .map(|push| serde_json::to_value(&push.pack).unwrap());
            assert_eq!(push.as_ref(), stored.get("pack"), "{line}");
        }
    }
}

//! Requests for the ticket, its runs and the issues that follow from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::RequestProperties;
use crate::{
    budget::{amounts::TicketCost, history::EffortEstimate, run_limits::Dollars},
    identity::{
        attachment::OmittedAttachment, commit::CommitId, repository::RepositoryName, ticket::TicketQuestion,
        time::Timestamp,
    },
    journal::{
        kind::RecordKind,
        stop::{StopReason, TicketDeparture},
    },
    trigger::{
        job::Job,
        job_subject::{CitedAnswer, CommentQuestion, DiscussionTask},
        pull_request::{BranchRef, PullRequestRef},
        reaction::{ReactionKind, ReactionSubject},
        skip::SkipReason,
    },
    work::{
        handover::{ChangePlan, PlannedIssue},
        model::RunPhase,
    },
};

/// Request at the start of work: set the in-progress status, write the status comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkStarted {
    /// The kind of work.
    pub job: Job,
    /// The repository that receives the change.
    pub repository: RepositoryName,
    /// Origin of the work.
    #[serde(default, skip_serializing_if = "WorkOrigin::is_unknown")]
    pub begun: WorkOrigin,
}

/// Origin of the work, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkOrigin {
    /// The user who requested the work, by the name in the tracker; absent: unknown, or no user did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// True when a command or an API call requested it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_command: bool,
    /// True when a person resumed a waiting run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_again: bool,
    /// The commit whose checks failed, for a repair. The ticket has no other comment about the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_on: Option<FailedCommit>,
    /// Attachments of the ticket that the work does without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<OmittedAttachment>,
}

/// A commit whose checks failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCommit {
    /// Id of the commit.
    pub head: CommitId,
    /// URL of the CI run; empty: unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub page: String,
}

impl WorkOrigin {
    /// Returns true when the origin is unknown.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

impl RequestProperties for WorkStarted {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        format!("tell the ticket that work on {} starts", self.repository)
    }
}

/// Request for a reaction that shows that a text was read, or that its request is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionRequest {
    /// Target of the reaction.
    pub to: ReactionSubject,
    /// The reaction to add.
    pub reaction: ReactionKind,
}

impl RequestProperties for ReactionRequest {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(self.to.repository())
    }

    fn summary(&self) -> String {
        format!("react with {}", self.reaction.as_str())
    }
}

/// Request to post an estimate that is based on earlier runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffortForecast {
    /// The repository that receives the change.
    pub repository: RepositoryName,
    /// Effort of similar work.
    pub forecast: EffortEstimate,
}

impl RequestProperties for EffortForecast {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        "tell the ticket what similar work took".to_owned()
    }
}

/// Request to reply to a question where it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAnswered {
    /// The repository that the question is about.
    pub repository: RepositoryName,
    /// The question that was asked.
    pub question: CommentQuestion,
    /// The answer with its citations.
    pub answer: CitedAnswer,
}

impl RequestProperties for QuestionAnswered {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        format!("answer {}", self.question.author)
    }
}

/// Request to reply with the cost of the ticket's runs where it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostReply {
    /// The pull request of the question; absent: it was asked on the ticket.
    pub on: Option<PullRequestRef>,
    /// Cost of the ticket's runs.
    pub cost: TicketCost,
}

impl RequestProperties for CostReply {
    fn repository(&self) -> Option<&RepositoryName> {
        self.on.as_ref().map(|on| &on.repository)
    }

    fn summary(&self) -> String {
        format!("tell what the ticket has cost: {}", self.cost.cost_usd)
    }
}

/// Request to reply with the ways to steer the work where it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelpReply {
    /// The pull request of the question; absent: it was asked on the ticket.
    pub on: Option<PullRequestRef>,
    /// True when the ticket is a pull request of another author that Journeyman only reviews.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_review: bool,
    /// The order that the user almost gave; absent: the user asked for all ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meant: Option<String>,
}

impl RequestProperties for HelpReply {
    fn repository(&self) -> Option<&RepositoryName> {
        self.on.as_ref().map(|on| &on.repository)
    }

    fn summary(&self) -> String {
        "reply with the orders for comments".to_owned()
    }
}

/// Request for a person's decision about a plan: show it, explain how to decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanProposed {
    /// The repository of the change.
    pub repository: RepositoryName,
    // The id has the form of a commit, so that one kind of decision, over comment, API and command line,
    // covers plans and changes.
    /// Id of the plan, which takes the place of a commit in the decision.
    pub id: CommitId,
    /// The proposed plan.
    pub plan: Box<ChangePlan>,
}

impl RequestProperties for PlanProposed {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn asks_about(&self) -> Option<&CommitId> {
        Some(&self.id)
    }

    fn summary(&self) -> String {
        format!("ask a person to decide about plan {}", self.id.short())
    }
}

/// Request to post questions of the model on the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAsked {
    /// The questions; one to three.
    pub questions: Vec<TicketQuestion>,
}

impl RequestProperties for QuestionAsked {
    fn answers_call(&self) -> bool {
        true
    }

    fn summary(&self) -> String {
        let texts: Vec<&str> = self
            .questions
            .iter()
            .map(|question| question.text.as_str())
            .collect();
        format!("ask on the ticket: {}", texts.join(" "))
    }
}

/// Request after a run ended without reaching its goal: give the reason and the next step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStopped {
    /// The kind of work.
    pub job: Job,
    /// Reason for the end.
    pub reason: StopReason,
    /// The pull request that remains open as a draft.
    pub pull_request: Option<PullRequestRef>,
    /// The pushed branch without a pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchRef>,
}

impl RequestProperties for RunStopped {
    fn repository(&self) -> Option<&RepositoryName> {
        let drafted = self.pull_request.as_ref().map(|known| &known.repository);
        drafted.or(self.branch.as_ref().map(|pushed| &pushed.repository))
    }

    fn summary(&self) -> String {
        format!("tell the ticket: {}", self.reason.as_str())
    }
}

/// Request after a transient failure: give the time of the retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryScheduled {
    /// The kind of work.
    pub job: Job,
    /// The failure that caused the retry.
    pub reason: StopReason,
    /// Number of the retry, from 1.
    pub attempt: u32,
    /// Maximum number of retries.
    pub most: u32,
    /// Time of the retry.
    pub due: Timestamp,
}

impl RequestProperties for RetryScheduled {
    fn summary(&self) -> String {
        format!("tell the ticket that it is tried again at {}", self.due)
    }
}

/// Request after the ticket's work crashed planners repeatedly: explain the quarantine and the way to retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketQuarantined {
    /// Description without secrets.
    pub reason: String,
}

impl RequestProperties for TicketQuarantined {
    fn summary(&self) -> String {
        "tell the ticket that it is quarantined".to_owned()
    }
}

/// Request after a record about the ticket was dead-lettered as unreadable: notify the ticket. All other work
/// continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadableRecordNotice {
    /// Kind of the record: a trigger or a report.
    pub what: RecordKind,
    /// True when the record is readable, but crashed each process that handled it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_poison: bool,
}

impl RequestProperties for UnreadableRecordNotice {
    fn summary(&self) -> String {
        format!("tell the ticket that a {} could not be read", self.what)
    }
}

impl RequestProperties for SkipReason {
    fn summary(&self) -> String {
        "tell the ticket why it is skipped".to_owned()
    }
}

impl RequestProperties for TicketDeparture {
    fn summary(&self) -> String {
        format!("notify the pull request: the ticket was {}", self.words())
    }
}

/// Progress of a run at the time of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobProgress {
    /// The kind of work.
    pub job: Job,
    /// Phase of the last conversation with the model; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<RunPhase>,
    /// Progress of the first clone of the repository in percent; absent unless the run waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone_percent: Option<u8>,
    /// Cost of the run; absent when the price of a model is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Dollars>,
}

/// Request to update the progress in the status comment. It writes no other text, and the run does not wait
/// for it.
// No decision depends on the progress, so neither a replay nor a crash needs the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressUpdate {}

impl RequestProperties for ProgressUpdate {
    fn summary(&self) -> String {
        "show how far the run is".to_owned()
    }
}

/// Request to set the values that a triage chose for a ticket. Existing labels remain.
///
/// The name of this request in stored records is `add_labels`, after its first feature.
// An external service may refuse a single value, such as a priority. The receipt names it, and the other
// values are set nevertheless.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketTriaged {
    /// The repository whose rules apply; absent in records of earlier releases: that of the ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryName>,
    /// Chosen labels, each permitted by the repository's rules.
    pub labels: Vec<String>,
    /// Key of an open ticket with the same request. The reporter names it, links the two, and labels the
    /// duplicate. It closes neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<String>,
    /// Name of the issue type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue_type: Option<String>,
    /// Name of the priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Values for fields of the project, by the names of the fields.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}

impl RequestProperties for TicketTriaged {
    fn repository(&self) -> Option<&RepositoryName> {
        self.repository.as_ref()
    }

    fn answers_call(&self) -> bool {
        true
    }

    fn summary(&self) -> String {
        let mut parts = vec![format!("label the ticket {}", self.labels.join(", "))];
        parts.extend(self.issue_type.iter().map(|name| format!("type {name}")));
        parts.extend(self.priority.iter().map(|name| format!("priority {name}")));
        parts.extend(
            self.fields
                .iter()
                .map(|(field, value)| format!("{field} {value}")),
        );
        parts.extend(self.duplicate_of.iter().map(|of| format!("repeats {of}")));
        parts.join("; ")
    }
}

/// Request to open planned issues as sub-issues of an existing issue or of the first of them.
///
/// Issues that an earlier attempt of the same report opened are not opened again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenIssues {
    /// The repository that receives the issues.
    pub repository: RepositoryName,
    /// Number of the parent issue; absent: the first planned issue is the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// The issues. The reporter refuses all of them when there are more than the repository's rules allow.
    pub issues: Vec<PlannedIssue>,
}

/// Request to post the result of a task in a discussion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscussionResult {
    /// The repository whose rules apply.
    pub repository: RepositoryName,
    /// The completed task.
    pub task: DiscussionTask,
    /// Result of the task.
    pub answer: CitedAnswer,
}

impl RequestProperties for DiscussionResult {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        format!("{} the discussion", self.task.as_str())
    }
}

impl RequestProperties for OpenIssues {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        let titles: Vec<&str> = self.issues.iter().map(|issue| issue.title.as_str()).collect();
        format!("open {} issues: {}", titles.len(), titles.join("; "))
    }
}

//! What the reporter can be asked to do: one type each, and the one list of them.

use serde::{Deserialize, Serialize};

use super::{Proposal, PushBranch};
use crate::{
    Answered, BranchRef, CommentQuestion, CommitId, Description, FailedCheck, Forecast, Job, Plan,
    PullRequestRef, Question, RecordKind, RepairEnd, RepositoryName, SkipReason, StopReason, ThreadReply,
    Timestamp,
};

/// What every request says of itself.
trait Request {
    /// The repository whose rules govern it; absent: the ticket's.
    fn repository(&self) -> Option<&RepositoryName> {
        None
    }

    /// The commit or plan that a person is asked to decide on.
    fn asks_about(&self) -> Option<&CommitId> {
        None
    }

    /// Whether its outcome is the result of a tool call of the model's.
    fn answers_call(&self) -> bool {
        false
    }

    /// What is asked for, on one line, for the people who read journals.
    fn summary(&self) -> String;
}

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
    /// Work of this kind was done before: say what to expect.
    EffortForecast(EffortForecast),
    /// Import the pack, check it, push the branch.
    PushBranch(PushBranch),
    /// Open the draft pull request, or adopt the open one of the same branch; link it on the ticket.
    OpenPullRequest(OpenPullRequest),
    /// CI is green: mark the pull request ready, tell the ticket, hand over.
    ChecksPassed(ChecksPassed),
    /// No check reports: mark the pull request ready unless one is configured to, tell the ticket.
    ChecksAbsent(ChecksAbsent),
    /// CI is red: tell the ticket, keep the draft.
    ChecksFailed(ChecksFailed),
    /// Red checks were repaired: tell the ticket.
    ChecksRepaired(ChecksRepaired),
    /// A review was addressed: reply in its threads, and hand the pull request over once more.
    ReviewAddressed(ReviewAddressed),
    /// A question was answered: tell whoever asked, where they asked.
    QuestionAnswered(QuestionAnswered),
    /// A person pushed to the branch of a pull request of ours: it is a draft until its checks pass.
    PushedByOthers(PushedByOthers),
    /// A person merged: move the ticket to done, say so.
    Merged(Merged),
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
    /// Put labels on the ticket; those that are there already stay.
    AddLabels(AddLabels),
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

/// Work starts: in-progress status, status comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkStarted {
    /// The kind of work.
    pub job: Job,
    /// Where the change goes.
    pub repository: RepositoryName,
}

impl Request for WorkStarted {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        format!("tell the ticket that work on {} starts", self.repository)
    }
}

/// Work of this kind was done before: say what to expect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffortForecast {
    /// Where the change goes.
    pub repository: RepositoryName,
    /// What such work took.
    pub forecast: Forecast,
}

impl Request for EffortForecast {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        "tell the ticket what similar work took".to_owned()
    }
}

impl Request for PushBranch {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        format!("push {} at {}", self.branch, self.head.short())
    }
}

/// Open the draft pull request, or adopt the open one of the same branch; link it on the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenPullRequest {
    /// Where.
    pub repository: RepositoryName,
    /// Head branch, pushed before.
    pub branch: String,
    /// The branch it should be merged into.
    pub base_branch: String,
    /// At most 256 characters.
    pub title: String,
    /// Markdown by the model, at most 60,000 characters; the reporter neutralises mentions and keywords. Empty where
    /// there is a description.
    #[serde(default)]
    pub body: String,
    /// What it says, for the reporter to put into words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Box<Description>>,
}

impl Request for OpenPullRequest {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        format!("open draft pull request \"{}\"", self.title)
    }
}

/// CI is green: mark the pull request ready, tell the ticket, hand over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksPassed {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// The commit that was checked.
    pub head: CommitId,
}

impl Request for ChecksPassed {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!("mark #{} ready", self.pull_request.number)
    }
}

/// No check reports: mark the pull request ready unless one is configured to, tell the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksAbsent {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// The commit on which nothing reported.
    pub head: CommitId,
}

impl Request for ChecksAbsent {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!(
            "no check reports on #{}: mark it ready if none is configured",
            self.pull_request.number
        )
    }
}

/// CI is red: tell the ticket, keep the draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksFailed {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// The commit that was checked.
    pub head: CommitId,
    /// What failed.
    pub failed: Vec<FailedCheck>,
    /// Why nothing is done about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrepaired: Option<RepairEnd>,
}

impl Request for ChecksFailed {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!("tell that CI of #{} is red", self.pull_request.number)
    }
}

/// Red checks were repaired: tell the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksRepaired {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// The commit that was pushed; absent: the branch was right already.
    pub commit: Option<CommitId>,
    /// How.
    pub strategy: RepairStrategy,
    /// What was wrong, and what the repair does.
    pub summary: String,
}

/// How red checks were repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairStrategy {
    /// By the commands of `ci.auto_fix`, without a model.
    AutoFix,
    /// By the model.
    Model,
}

impl Request for ChecksRepaired {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!(
            "tell the ticket that the checks of #{} are repaired",
            self.pull_request.number
        )
    }
}

/// A review was addressed: reply in its threads, and hand the pull request over once more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewAddressed {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// Login of the reviewer.
    pub reviewer: String,
    /// The commit that was pushed for it; absent: nothing was changed.
    pub commit: Option<CommitId>,
    /// What was changed and why, by the model.
    pub summary: String,
    /// One for each comment of the review.
    pub replies: Vec<ThreadReply>,
}

impl Request for ReviewAddressed {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!(
            "reply to the review of #{} by {}",
            self.pull_request.number, self.reviewer
        )
    }
}

/// A question was answered: tell whoever asked, where they asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAnswered {
    /// The repository that it is about.
    pub repository: RepositoryName,
    /// The question.
    pub question: CommentQuestion,
    /// The answer.
    pub answer: Answered,
}

impl Request for QuestionAnswered {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        format!("answer {}", self.question.author)
    }
}

/// A person pushed to the branch of a pull request of ours: it is a draft until its checks pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedByOthers {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// The head that was pushed.
    pub head: CommitId,
    /// Who pushed.
    pub by: String,
}

impl Request for PushedByOthers {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!(
            "{} pushed to #{}: back to draft",
            self.by, self.pull_request.number
        )
    }
}

/// A person merged: move the ticket to done, say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merged {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// Who merged.
    pub by: String,
}

impl Request for Merged {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!(
            "#{} was merged by {}: close the ticket",
            self.pull_request.number, self.by
        )
    }
}

/// A person closed the pull request unmerged: say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// Who closed.
    pub by: String,
}

impl Request for Closed {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.pull_request.repository)
    }

    fn summary(&self) -> String {
        format!(
            "#{} was closed by {}: tell the ticket",
            self.pull_request.number, self.by
        )
    }
}

impl Request for Proposal {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.push.repository)
    }

    fn asks_about(&self) -> Option<&CommitId> {
        Some(&self.push.head)
    }

    fn summary(&self) -> String {
        format!("ask a person to decide about {}", self.push.head.short())
    }
}

/// A run waits for a person's decision about its plan: show it, say how to decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanProposed {
    /// The repository of the change.
    pub repository: RepositoryName,
    /// Stands for the plan where a decision names a commit.
    pub id: CommitId,
    /// The plan.
    pub plan: Box<Plan>,
}

impl Request for PlanProposed {
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

/// The model needs an answer: ask on the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAsked {
    /// One to three.
    pub questions: Vec<Question>,
}

impl Request for QuestionAsked {
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

/// A run ended without reaching its goal: say why and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStopped {
    /// The kind of work.
    pub job: Job,
    /// Why.
    pub reason: StopReason,
    /// What exists and is kept as a draft.
    pub pull_request: Option<PullRequestRef>,
    /// What was pushed although no pull request is open for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchRef>,
}

impl Request for RunStopped {
    fn repository(&self) -> Option<&RepositoryName> {
        let drafted = self.pull_request.as_ref().map(|known| &known.repository);
        drafted.or(self.branch.as_ref().map(|pushed| &pushed.repository))
    }

    fn summary(&self) -> String {
        format!("tell the ticket: {}", self.reason.as_str())
    }
}

/// A run failed for a reason that may pass and is tried again later: say when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryScheduled {
    /// The kind of work.
    pub job: Job,
    /// What failed.
    pub reason: StopReason,
    /// Which retry, from 1.
    pub attempt: u32,
    /// How many there are at most.
    pub most: u32,
    /// When.
    pub due: Timestamp,
}

impl Request for RetryScheduled {
    fn summary(&self) -> String {
        format!("tell the ticket that it is tried again at {}", self.due)
    }
}

/// The ticket's work brought planners down again and again and is set aside: say so, and how to retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantined {
    /// In words, without secrets.
    pub reason: String,
}

impl Request for Quarantined {
    fn summary(&self) -> String {
        "tell the ticket that it is quarantined".to_owned()
    }
}

/// A record about the ticket could not be read and was set aside: say so; everything else goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// Which: a trigger or a report.
    pub what: RecordKind,
}

impl Request for Unreadable {
    fn summary(&self) -> String {
        format!("tell the ticket that a {} could not be read", self.what)
    }
}

/// Put labels on the ticket; those that are there already stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddLabels {
    /// Each one allowed by the repository's rules.
    pub labels: Vec<String>,
}

impl Request for AddLabels {
    fn answers_call(&self) -> bool {
        true
    }

    fn summary(&self) -> String {
        format!("label the ticket {}", self.labels.join(", "))
    }
}

impl Request for SkipReason {
    fn summary(&self) -> String {
        "tell the ticket why it is skipped".to_owned()
    }
}

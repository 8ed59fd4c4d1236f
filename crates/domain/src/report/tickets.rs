//! Requests about the ticket and its runs.

use serde::{Deserialize, Serialize};

use super::request::Request;
use crate::{
    Answered, BranchRef, CommentQuestion, CommitId, Forecast, Job, Plan, PullRequestRef, Question, Reactable,
    Reaction, RecordKind, RepositoryName, SkipReason, StopReason, TicketCost, Timestamp,
};

/// Work starts: in-progress status, status comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkStarted {
    /// The kind of work.
    pub job: Job,
    /// Where the change goes.
    pub repository: RepositoryName,
    /// What the run began with.
    #[serde(default, skip_serializing_if = "Begun::is_unknown")]
    pub begun: Begun,
}

/// What work began with, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Begun {
    /// Who asked for it, as the outside names them; absent: nobody did, or it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whether it was asked for by a command or the API.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_command: bool,
    /// Whether a person made a run go on that waited.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_again: bool,
    /// The commit whose checks failed, for a repair: nothing else tells of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_on: Option<FailedOn>,
}

/// A commit whose checks failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedOn {
    /// The commit.
    pub head: CommitId,
    /// The page of the CI run, for people; empty: there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub page: String,
}

impl Begun {
    /// Whether nothing is known of it.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

impl Request for WorkStarted {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(&self.repository)
    }

    fn summary(&self) -> String {
        format!("tell the ticket that work on {} starts", self.repository)
    }
}

/// Show with a reaction that something was seen, or that it is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct React {
    /// What to react to.
    pub to: Reactable,
    /// How.
    pub reaction: Reaction,
}

impl Request for React {
    fn repository(&self) -> Option<&RepositoryName> {
        Some(self.to.repository())
    }

    fn summary(&self) -> String {
        format!("react with {}", self.reaction.as_str())
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

/// Somebody asked what the ticket's runs have taken: say it where they asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostTold {
    /// Where they asked, when that is a pull request.
    pub on: Option<PullRequestRef>,
    /// What they have taken.
    pub cost: TicketCost,
}

impl Request for CostTold {
    fn repository(&self) -> Option<&RepositoryName> {
        self.on.as_ref().map(|on| &on.repository)
    }

    fn summary(&self) -> String {
        format!("tell what the ticket has cost: {}", self.cost.cost_usd)
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

/// A record about the ticket could not be read or handled and was set aside: say so; everything else goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// Which: a trigger or a report.
    pub what: RecordKind,
    /// True when it can be read, but ended each process that handled it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_poison: bool,
}

impl Request for Unreadable {
    fn summary(&self) -> String {
        format!("tell the ticket that a {} could not be read", self.what)
    }
}

impl Request for SkipReason {
    fn summary(&self) -> String {
        "tell the ticket why it is skipped".to_owned()
    }
}

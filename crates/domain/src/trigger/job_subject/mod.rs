//! Subject of a job in addition to its ticket: checks, a review, a conflict, a question or a discussion.

mod request;

use serde::{Deserialize, Serialize};

use crate::{
    identity::commit::CommitId,
    trigger::{
        conflict::ConflictedBase,
        job::Job,
        pull_request::{ChecksSummary, PullRequestFile, PullRequestRef},
        reaction::ReactionSubject,
    },
    work::pull_request_review::ReviewedChange,
};

pub use request::JobRequest;

/// Subject of a job in addition to its ticket.
// The payloads are boxed, because most jobs are about the ticket alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum JobSubject {
    /// The ticket is the only subject.
    #[default]
    Ticket,
    /// Failed checks of a pull request that Journeyman opened.
    Checks(Box<ChecksSummary>),
    /// A review of a pull request that Journeyman opened.
    Review(Box<ReviewRound>),
    /// A conflict of a pull request that Journeyman opened with its base branch.
    Conflict(Box<ConflictedBase>),
    /// A question that a person asked in a comment.
    Question(Box<CommentQuestion>),
    /// A pull request of another author that Journeyman reviews.
    Change(Box<ReviewedChange>),
    /// A task in a GitHub discussion.
    Discussion(Box<DiscussionRequest>),
    /// A job that Journeyman only rehearses.
    Rehearsal(Box<RehearsedJob>),
}

/// Task in a GitHub discussion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscussionRequest {
    /// Kind of the task.
    pub task: DiscussionTask,
    /// The comment that asks for it; absent: the discussion itself asks, or the request came over another
    /// channel than GitHub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<ReactionSubject>,
}

/// Kinds of tasks in a discussion, except answering questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum DiscussionTask {
    /// Finds the answers that the code gives to the discussion's questions.
    Research,
    /// Summarizes the discussion in one comment and keeps that comment up to date.
    Summarize,
    /// Opens the issues that follow from the discussion.
    Plan,
    /// Writes down how the discussion ended and closes it.
    Complete,
}

impl DiscussionTask {
    /// All tasks, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Research, Self::Summarize, Self::Plan, Self::Complete];

    /// The name in the API, in prompts and in journals.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A rehearsed job: the reporter describes what the job would write and writes none of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RehearsedJob {
    /// The kind of work that is rehearsed.
    pub job: Job,
    /// The subject that the rehearsed work would have.
    #[serde(default, skip_serializing_if = "JobSubject::is_ticket")]
    pub about: JobSubject,
}

impl JobSubject {
    /// Returns true when the ticket is the only subject.
    pub const fn is_ticket(&self) -> bool {
        matches!(self, Self::Ticket)
    }

    /// Returns the pull request that the work continues, with its head when the job was requested.
    pub fn pull_request(&self) -> Option<(&PullRequestRef, &CommitId)> {
        match self {
            Self::Ticket | Self::Question(_) | Self::Change(_) | Self::Discussion(_) | Self::Rehearsal(_) => {
                None
            }
            Self::Checks(checks) => Some((&checks.pull_request, &checks.head)),
            Self::Review(round) => Some((&round.pull_request, &round.head)),
            Self::Conflict(conflict) => Some((&conflict.pull_request, &conflict.head)),
        }
    }

    /// Replaces the head of the pull request that the work continues. Does nothing for subjects without one.
    pub fn move_to(&mut self, now: &CommitId) {
        let head = match self {
            Self::Ticket | Self::Question(_) | Self::Change(_) | Self::Discussion(_) | Self::Rehearsal(_) => {
                return;
            }
            Self::Checks(checks) => &mut checks.head,
            Self::Review(round) => &mut round.head,
            Self::Conflict(conflict) => &mut conflict.head,
        };
        head.clone_from(now);
    }

    /// The name by which templates choose.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Returns the rehearsed job if this is a rehearsal.
    pub const fn rehearsal(&self) -> Option<&RehearsedJob> {
        if let Self::Rehearsal(rehearsal) = self {
            Some(rehearsal)
        } else {
            None
        }
    }

    /// Returns the failed checks if they are the subject.
    pub const fn checks(&self) -> Option<&ChecksSummary> {
        if let Self::Checks(checks) = self {
            Some(checks)
        } else {
            None
        }
    }

    /// Returns the review of our pull request if it is the subject.
    pub const fn round(&self) -> Option<&ReviewRound> {
        if let Self::Review(round) = self {
            Some(round)
        } else {
            None
        }
    }

    /// Returns the conflict with the base branch if it is the subject.
    pub const fn conflict(&self) -> Option<&ConflictedBase> {
        if let Self::Conflict(conflict) = self {
            Some(conflict)
        } else {
            None
        }
    }

    /// Returns the question if it is the subject.
    pub const fn question(&self) -> Option<&CommentQuestion> {
        if let Self::Question(question) = self {
            Some(question)
        } else {
            None
        }
    }

    /// Returns the pull request to review if it is the subject.
    pub const fn change(&self) -> Option<&ReviewedChange> {
        if let Self::Change(change) = self {
            Some(change)
        } else {
            None
        }
    }

    /// Returns the task in a discussion if it is the subject.
    pub const fn discussion(&self) -> Option<&DiscussionRequest> {
        if let Self::Discussion(discussion) = self {
            Some(discussion)
        } else {
            None
        }
    }

    /// Returns the requests of reviewers in threads of a review; empty for every other subject.
    pub fn threads(&self) -> &[ReviewThread] {
        match self {
            Self::Review(round) => &round.threads,
            Self::Ticket
            | Self::Checks(_)
            | Self::Conflict(_)
            | Self::Question(_)
            | Self::Change(_)
            | Self::Discussion(_)
            | Self::Rehearsal(_) => &[],
        }
    }

    /// Returns the commit to check out for the job; absent: the head of the default branch.
    pub fn base(&self) -> Option<&CommitId> {
        match self {
            Self::Question(question) => question.head.as_ref(),
            // The head of a fork may be missing in our mirror, so only a head that the repository has can be
            // checked out.
            Self::Change(change) => change.is_here.then_some(&change.head),
            // The head of the pull request is merged into the tip of the base branch, which the account that found the
            // conflict may be unable to read.
            Self::Conflict(_) => None,
            Self::Ticket | Self::Checks(_) | Self::Review(_) | Self::Discussion(_) | Self::Rehearsal(_) => {
                Some(self.pull_request()?.1)
            }
        }
    }
}

/// A question that a person asks in a comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentQuestion {
    /// Name of the author as the tracker displays it; at most 100 characters.
    pub author: String,
    /// The text of the question, sanitized.
    pub text: String,
    /// Our pull request that the question was asked on; absent: it was asked on the ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestRef>,
    /// Head of that pull request when the question was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<CommitId>,
    /// The comment, if GitHub accepts reactions on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<ReactionSubject>,
    // Ingest decides about permissions before the model reads the comment. So no text can extend the rights
    // of its author, and the planner needs no right to write triggers.
    /// The work that begins if the comment turns out to ask for a change, pinned with the permissions of that
    /// moment. Absent: the comment cannot ask for work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Box<JobRequest>>,
}

/// The answer to a question, with the places in the code that support it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CitedAnswer {
    /// The answer as Markdown, written by the model; at most 8,000 characters.
    pub answer: String,
    /// The places in the code that support the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<CodeCitation>,
    /// True when the comment asks for a change, which then begins. Only valid for a question that carries
    /// work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_change: bool,
    /// The questions that a research task found, each with its answer; at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<AnsweredQuestion>,
}

/// A question that a research task found in a discussion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredQuestion {
    /// The question in one line; at most 300 characters.
    pub question: String,
    /// The answer as Markdown, written by the model; at most 3,000 characters.
    pub answer: String,
    /// The places in the code that support the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<CodeCitation>,
}

/// A place in the code that the model read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeCitation {
    /// Path of the file, relative to the root of the repository.
    pub path: String,
    /// The line number, counted from 1.
    pub line: u32,
    /// The text of that line.
    pub quote: String,
}

/// One review of a pull request that Journeyman opened, with its comments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRound {
    /// The reviewed pull request.
    pub pull_request: PullRequestRef,
    /// Head of the pull request when the review was read.
    pub head: CommitId,
    /// The id of the review on GitHub.
    pub id: u64,
    /// Login of the reviewer.
    pub author: String,
    /// True when the reviewer requests changes before a merge.
    pub asks_for_changes: bool,
    /// The text of the review as a whole, sanitized; may be empty.
    pub body: String,
    /// Its comments on lines, in their order; at most 50. [`Self::left`] has the threads that are excluded
    /// here.
    pub threads: Vec<ReviewThread>,
    /// Threads that reviewers reopened after the maximum number of rounds that the rules allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<LeftThreads>,
    /// Logins of the people who make decisions that need a person; empty: the reviewer and the ticket's
    /// assignee.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deciders: Vec<String>,
    /// True when a program wrote the review: its text is information, not an instruction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_program: bool,
    /// Files that the pull request changes, within the amount that a model can read at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PullRequestFile>,
}

impl ReviewRound {
    /// Returns the threads left to people if the review asks for nothing else.
    pub fn only_left(&self) -> Option<&LeftThreads> {
        let is_all = self.threads.is_empty() && self.body.trim().is_empty();
        self.left.as_ref().filter(|_| is_all)
    }
}

/// Threads of a review that Journeyman leaves to people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftThreads {
    /// The ids of the comments that began the threads.
    pub threads: Vec<u64>,
    /// Number of rounds in which Journeyman worked on them.
    pub rounds: u32,
    /// Logins of the people who are asked to decide.
    pub asked: Vec<String>,
}

/// A thread of a review on a file or line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewThread {
    /// The id of the comment on GitHub: replies go to it.
    pub id: u64,
    /// Path of the file, relative to the root of the repository.
    pub path: String,
    /// The line in the new file; absent: the thread is about the file, or its line is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The text of the comment, sanitized.
    pub text: String,
    /// Earlier comments of the thread, oldest first; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<ThreadRemark>,
    /// The end of the hunk on which the thread began, up to its line; empty: unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hunk: String,
}

/// An earlier comment in a thread of a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRemark {
    /// Login of the author; at most 100 characters.
    pub author: String,
    /// True when Journeyman wrote the comment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ours: bool,
    /// True when the author is not allowed to give instructions: the text is information only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stranger: bool,
    /// The text of the comment, sanitized.
    pub text: String,
}

/// Result of Journeyman's work on one comment of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadDisposition {
    /// The code was changed for the comment.
    Changed,
    /// The comment is a question, and the reply answers it.
    Answered,
    /// Nothing was changed; the reply gives the reason.
    Declined,
    /// A person has to give details or decide.
    Asked,
}

/// The reply to a comment of a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadReply {
    /// The id of the comment on GitHub.
    pub id: u64,
    /// Result of the work on the comment.
    pub disposition: ThreadDisposition,
    /// Text of the reply, written by the model; at most 2,000 characters.
    pub reply: String,
}

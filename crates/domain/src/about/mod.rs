//! What a job is about beside its ticket: something on a pull request of ours.

mod request;

use serde::{Deserialize, Serialize};

use crate::{ChangedFile, ChecksSummary, CommitId, Job, PullRequestRef, ReviewedChange};

pub use request::JobRequest;

/// What a job is about beside its ticket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum About {
    /// Nothing else.
    #[default]
    Ticket,
    /// Checks of a pull request of ours that failed.
    Checks(Box<ChecksSummary>),
    /// A review of a pull request of ours.
    Review(Box<ReviewRound>),
    /// A question in a comment.
    Question(Box<CommentQuestion>),
    /// A pull request of somebody that is to be reviewed.
    Change(Box<ReviewedChange>),
    /// What is to be done in a discussion.
    Discussion(Box<DiscussionRequest>),
    /// A job that is only rehearsed.
    Rehearsal(Box<Rehearsal>),
}

/// What is to be done in a discussion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscussionRequest {
    /// What.
    pub task: DiscussionTask,
    /// The comment that asks for it; absent: the discussion itself does, or nobody on GitHub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<crate::Reactable>,
}

/// What can be done in a discussion, beside answering questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiscussionTask {
    /// Find out what the code says to its questions.
    Research,
    /// Sum it up, in one comment that is kept up to date.
    Summarize,
    /// Open the issues that follow from it.
    Plan,
    /// Say how it ended, and close it.
    Complete,
}

impl DiscussionTask {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Research, Self::Summarize, Self::Plan, Self::Complete];

    /// The name in the API, in prompts and journals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Research => "research",
            Self::Summarize => "summarize",
            Self::Plan => "plan",
            Self::Complete => "complete",
        }
    }
}

/// A job that is not done: what it would write is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehearsal {
    /// The kind of work.
    pub job: Job,
    /// What that would be about.
    #[serde(default, skip_serializing_if = "About::is_ticket")]
    pub about: About,
}

impl About {
    /// Whether it is about the ticket alone.
    pub const fn is_ticket(&self) -> bool {
        matches!(self, Self::Ticket)
    }

    /// The pull request that the work goes on with, and its head at that moment.
    pub fn pull_request(&self) -> Option<(&PullRequestRef, &CommitId)> {
        match self {
            Self::Ticket | Self::Question(_) | Self::Change(_) | Self::Discussion(_) | Self::Rehearsal(_) => {
                None
            }
            Self::Checks(checks) => Some((&checks.pull_request, &checks.head)),
            Self::Review(round) => Some((&round.pull_request, &round.head)),
        }
    }

    /// The work goes on with another head of its pull request.
    pub fn move_to(&mut self, now: &CommitId) {
        let head = match self {
            Self::Ticket | Self::Question(_) | Self::Change(_) | Self::Discussion(_) | Self::Rehearsal(_) => {
                return;
            }
            Self::Checks(checks) => &mut checks.head,
            Self::Review(round) => &mut round.head,
        };
        head.clone_from(now);
    }

    /// What it is called where templates choose by it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ticket => "ticket",
            Self::Checks(_) => "checks",
            Self::Review(_) => "review",
            Self::Question(_) => "question",
            Self::Change(_) => "change",
            Self::Discussion(_) => "discussion",
            Self::Rehearsal(_) => "rehearsal",
        }
    }

    /// The job that is rehearsed, when it is one.
    pub const fn rehearsal(&self) -> Option<&Rehearsal> {
        if let Self::Rehearsal(rehearsal) = self {
            Some(rehearsal)
        } else {
            None
        }
    }

    /// The checks that failed, when it is about these.
    pub const fn checks(&self) -> Option<&ChecksSummary> {
        if let Self::Checks(checks) = self {
            Some(checks)
        } else {
            None
        }
    }

    /// The review of a pull request of ours, when it is about one.
    pub const fn round(&self) -> Option<&ReviewRound> {
        if let Self::Review(round) = self {
            Some(round)
        } else {
            None
        }
    }

    /// The question, when it is about one.
    pub const fn question(&self) -> Option<&CommentQuestion> {
        if let Self::Question(question) = self {
            Some(question)
        } else {
            None
        }
    }

    /// The pull request to review, when it is about one.
    pub const fn change(&self) -> Option<&ReviewedChange> {
        if let Self::Change(change) = self {
            Some(change)
        } else {
            None
        }
    }

    /// What is to be done in a discussion, when it is about that.
    pub const fn discussion(&self) -> Option<&DiscussionRequest> {
        if let Self::Discussion(discussion) = self {
            Some(discussion)
        } else {
            None
        }
    }

    /// What people asked in threads of a review; none for anything else.
    pub fn threads(&self) -> &[ReviewThread] {
        match self {
            Self::Review(round) => &round.threads,
            Self::Ticket
            | Self::Checks(_)
            | Self::Question(_)
            | Self::Change(_)
            | Self::Discussion(_)
            | Self::Rehearsal(_) => &[],
        }
    }

    /// The commit that a checkout for it is of; absent: the head of the default branch.
    pub fn base(&self) -> Option<&CommitId> {
        match self {
            Self::Question(question) => question.head.as_ref(),
            Self::Change(change) => change.is_here.then_some(&change.head),
            Self::Ticket | Self::Checks(_) | Self::Review(_) | Self::Discussion(_) | Self::Rehearsal(_) => {
                Some(self.pull_request()?.1)
            }
        }
    }
}

/// A question that a person asks in a comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentQuestion {
    /// Who asks, as people know them; at most 100 characters.
    pub author: String,
    /// What is asked, sanitised.
    pub text: String,
    /// Our pull request that it was asked on; absent: it was asked on the ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestRef>,
    /// Its head at that moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<CommitId>,
    /// The comment, where it can be reacted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<crate::Reactable>,
    /// The work that begins when the comment turns out to ask for a change, as it was allowed and pinned then; absent: it
    /// can ask for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Box<JobRequest>>,
}

/// The answer to a question, and where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// Markdown by the model; at most 8,000 characters.
    pub answer: String,
    /// The places in the code that show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Citation>,
    /// Whether the comment asks for a change instead, which then begins. Only where the question has the work for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_change: bool,
    /// The questions that a research found, each with its own answer; at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<AnsweredQuestion>,
}

/// A question that a research found in a discussion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredQuestion {
    /// In one line; at most 300 characters.
    pub question: String,
    /// Markdown by the model; at most 3,000 characters.
    pub answer: String,
    /// The places in the code that show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Citation>,
}

/// A place in the code that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// What stands there.
    pub quote: String,
}

/// One review of a pull request of ours, with its comments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRound {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// Its head when the review was read.
    pub head: CommitId,
    /// The review's id on GitHub.
    pub id: u64,
    /// Login of the reviewer.
    pub author: String,
    /// Whether changes are asked for before a merge.
    pub asks_for_changes: bool,
    /// What the review says as a whole, sanitised; may be empty.
    pub body: String,
    /// Its comments on lines, in their order; at most 50. Those of [`Self::left`] are not among them.
    pub threads: Vec<ReviewThread>,
    /// Threads that came back after they were worked on as often as the rules allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<LeftThreads>,
    /// Logins of those who decide what only a person can; empty: the reviewer, and whoever has the ticket.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deciders: Vec<String>,
    /// Whether a program reviewed: what it says is information, not an instruction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_program: bool,
    /// What the pull request changes, as far as a model can read it at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ChangedFile>,
}

impl ReviewRound {
    /// What is left to people, when the review asks for nothing else.
    pub fn only_left(&self) -> Option<&LeftThreads> {
        let is_all = self.threads.is_empty() && self.body.trim().is_empty();
        self.left.as_ref().filter(|_| is_all)
    }
}

/// Threads of a review that are left to people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftThreads {
    /// The ids of the comments that began them.
    pub threads: Vec<u64>,
    /// How often they were worked on.
    pub rounds: u32,
    /// Logins of those who are asked to decide.
    pub asked: Vec<String>,
}

/// A comment of a review on a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewThread {
    /// The comment's id on GitHub: replies go there.
    pub id: u64,
    /// The file.
    pub path: String,
    /// The line in the new file; absent: it is about the file, or its line is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What is said, sanitised.
    pub text: String,
    /// What was said in the thread before, oldest first; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<ThreadRemark>,
    /// The end of the hunk that the thread was begun at, up to its line; empty: not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hunk: String,
}

/// What somebody said earlier in a thread of a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRemark {
    /// Their login; at most 100 characters.
    pub author: String,
    /// Whether we said it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ours: bool,
    /// Whether they may not give us orders: what they said is information alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stranger: bool,
    /// What was said, sanitised.
    pub text: String,
}

/// What became of a comment of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// The code was changed for it.
    Changed,
    /// A question that has its answer.
    Answered,
    /// Nothing was changed, for a reason.
    Declined,
    /// A person has to say more, or to decide.
    Asked,
}

/// The reply to a comment of a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadReply {
    /// The comment's id.
    pub id: u64,
    /// What became of it.
    pub disposition: Disposition,
    /// In words, by the model; at most 2,000 characters.
    pub reply: String,
}

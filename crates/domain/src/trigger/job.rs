//! Jobs: the kinds of work that a trigger requests, and the lanes in which they wait.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::identity::{repository::RepositoryName, ticket::TicketKey};

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// Writes the change that a ticket requests and opens a draft pull request.
    Implement,
    /// Sets labels and fields of a new ticket.
    Triage,
    /// Answers a question in a comment.
    Answer,
    /// Performs a task in a discussion: research, summary, planning of issues, or closing.
    Discuss,
    /// Reacts to failed checks of our pull request.
    FixCi,
    /// Reacts to a review of our pull request.
    AddressReview,
    /// Resolves a conflict of our pull request with its base branch.
    ResolveConflict,
    /// Reviews a pull request of another author.
    Review,
    /// Marks a draft with passed checks as ready for its reviewers.
    MarkReady,
    /// Closes the ticket of a merged pull request.
    Finish,
    /// Brings our pull request up to date with its base branch.
    UpdateBase,
    /// Converts a pull request to a draft after a person pushed to it.
    BackToDraft,
    /// Follows our pull request after a person reopened it.
    Reopen,
    /// Describes the writes of another job without a model, a workspace or outbound writes.
    Rehearse,
    /// Reminds reviewers of a pending review of our pull request.
    Remind,
}

/// Properties of a job that are the same for all its runs.
#[derive(Clone, Copy, Debug)]
pub struct JobProfile {
    /// The name in settings, the API and journals.
    pub name: &'static str,
    /// The work, after "Journeyman has started to".
    pub task: &'static str,
    /// Way in which the job is requested.
    pub access: JobAccess,
    lane: JobLane,
}

/// Way in which a job is requested.
#[derive(Clone, Copy, Debug)]
pub enum JobAccess {
    /// By users at these places, with these inputs.
    Users {
        /// Places at which the job can be requested.
        places: &'static [RequestPlace],
        /// Inputs that a request may contain.
        inputs: &'static [JobInput],
    },
    /// By a rehearsal of another job.
    Rehearsal,
    /// By an event of a pull request alone.
    Event,
}

/// Place at which a user requests a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPlace {
    /// A ticket at Jira or an issue at GitHub.
    Ticket,
    /// A pull request that Journeyman opened.
    OwnPullRequest,
    /// A discussion at GitHub.
    Discussion,
    /// A ticket of a local folder.
    Folder,
}

/// Input of a requested job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobInput {
    /// Instructions for the model.
    Instructions,
    /// The question to answer. A request cannot omit it.
    Question,
    /// Feedback on our pull request.
    Feedback,
    /// The task in a discussion. A request cannot omit it.
    Task,
    /// The comment that contains the request.
    Comment,
    /// Another repository than the ticket's.
    Repository,
}

impl JobInput {
    /// Returns the name of the field with the text of the requester; `None` for an input without text.
    pub const fn text_field(self) -> Option<&'static str> {
        match self {
            Self::Instructions => Some("instructions"),
            Self::Question => Some("question"),
            Self::Feedback => Some("feedback"),
            Self::Task | Self::Comment | Self::Repository => None,
        }
    }
}

impl RequestPlace {
    /// Returns the place of a ticket.
    pub const fn of(ticket: &TicketKey) -> Self {
        match ticket {
            TicketKey::Jira { .. } | TicketKey::GitHub { .. } => Self::Ticket,
            TicketKey::Discussion { .. } => Self::Discussion,
            TicketKey::Folder { .. } => Self::Folder,
        }
    }
}

/// Kind of the lane of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobLane {
    Change,
    Talk,
    Review,
    Upkeep,
}

impl JobProfile {
    const fn for_users(
        name: &'static str,
        task: &'static str,
        lane: JobLane,
        places: &'static [RequestPlace],
        inputs: &'static [JobInput],
    ) -> Self {
        Self {
            name,
            task,
            access: JobAccess::Users { places, inputs },
            lane,
        }
    }

    const fn for_events(name: &'static str, task: &'static str) -> Self {
        Self {
            name,
            task,
            access: JobAccess::Event,
            lane: JobLane::Upkeep,
        }
    }
}

impl Job {
    /// All jobs, in the order of their declaration.
    pub const ALL: [Self; 15] = [
        Self::Implement,
        Self::Triage,
        Self::Answer,
        Self::Discuss,
        Self::FixCi,
        Self::AddressReview,
        Self::ResolveConflict,
        Self::Review,
        Self::MarkReady,
        Self::Finish,
        Self::UpdateBase,
        Self::BackToDraft,
        Self::Reopen,
        Self::Rehearse,
        Self::Remind,
    ];

    /// Returns the properties of the job.
    pub const fn profile(self) -> JobProfile {
        use JobInput::{Comment, Feedback, Instructions, Question, Repository, Task};
        use RequestPlace::{Discussion, Folder, OwnPullRequest, Ticket};
        match self {
            Self::Implement => JobProfile::for_users(
                "implement",
                "work on this ticket",
                JobLane::Change,
                &[Ticket, Folder],
                &[Instructions, Repository],
            ),
            Self::Triage => {
                JobProfile::for_users("triage", "triage this ticket", JobLane::Review, &[Ticket], &[])
            }
            Self::Answer => JobProfile::for_users(
                "answer",
                "answer the question",
                JobLane::Talk,
                &[Ticket, OwnPullRequest, Discussion],
                &[Question, Comment],
            ),
            Self::Discuss => JobProfile::for_users(
                "discuss",
                "look into this discussion",
                JobLane::Talk,
                &[Discussion],
                &[Task, Comment],
            ),
            Self::FixCi => JobProfile::for_users(
                "fix_ci",
                "repair the failing checks",
                JobLane::Change,
                &[Ticket, OwnPullRequest],
                &[Instructions],
            ),
            Self::AddressReview => JobProfile::for_users(
                "address_review",
                "address the review",
                JobLane::Change,
                &[Ticket, OwnPullRequest],
                &[Feedback],
            ),
            // An event requests it, but it changes the branch as other work does.
            Self::ResolveConflict => JobProfile {
                name: "resolve_conflict",
                task: "resolve the conflict with the base branch",
                access: JobAccess::Event,
                lane: JobLane::Change,
            },
            Self::Review => JobProfile::for_users(
                "review",
                "review the pull request",
                JobLane::Review,
                &[Ticket],
                &[Instructions],
            ),
            Self::Rehearse => JobProfile {
                name: "rehearse",
                task: "tell what a job would write",
                access: JobAccess::Rehearsal,
                lane: JobLane::Review,
            },
            Self::MarkReady => JobProfile::for_events("mark_ready", "hand the pull request over"),
            Self::Finish => JobProfile::for_events("finish", "finish this ticket"),
            Self::UpdateBase => JobProfile::for_events(
                "update_base",
                "bring the pull request up to date with the base branch",
            ),
            Self::BackToDraft => {
                JobProfile::for_events("back_to_draft", "take the pull request back to draft")
            }
            Self::Reopen => JobProfile::for_events("reopen", "follow the pull request again"),
            Self::Remind => JobProfile::for_events("remind", "remind of the review"),
        }
    }

    /// Returns the lane in which the job waits, for a job about this repository.
    pub fn lane(self, repository: &RepositoryName) -> Lane {
        match self.profile().lane {
            JobLane::Change => Lane::Change {
                repository: repository.clone(),
            },
            JobLane::Talk => Lane::Talk,
            JobLane::Review => Lane::Review,
            JobLane::Upkeep => Lane::Upkeep,
        }
    }

    /// Returns true when the job works on a change of the repository.
    pub fn is_change(self) -> bool {
        self.profile().lane == JobLane::Change
    }

    /// Returns true when a user can request the job at the place.
    pub fn is_for(self, place: RequestPlace) -> bool {
        match self.profile().access {
            JobAccess::Users { places, .. } => places.contains(&place),
            JobAccess::Rehearsal | JobAccess::Event => false,
        }
    }

    /// Inputs that a request of the job may contain.
    pub const fn inputs(self) -> &'static [JobInput] {
        match self.profile().access {
            JobAccess::Users { inputs, .. } => inputs,
            JobAccess::Rehearsal | JobAccess::Event => &[],
        }
    }

    /// The name in settings, the API and journals.
    pub const fn as_str(self) -> &'static str {
        self.profile().name
    }
}

impl std::fmt::Display for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Queue in which a job of a ticket waits. One run at a time works in a lane, and lanes work in parallel.
///
/// A parked run frees its lane for other runs, but in a change lane it keeps its branch.
// Lanes keep short work, such as an answer, from waiting for a long change of the same ticket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Lane {
    /// Work on branches of one repository.
    Change {
        /// The repository that contains the branches.
        repository: RepositoryName,
    },
    /// Answers and comments for people.
    Talk,
    /// Assessments of the current state: a newer request of the same kind replaces an older one.
    Review,
    /// Work that must complete in any case, such as closing the ticket of a merged pull request.
    Upkeep,
}

impl Lane {
    /// True when a newer request of the same kind replaces an active run instead of waiting for it.
    pub const fn replaces(&self) -> bool {
        matches!(self, Self::Review)
    }

    /// True when a request to stop the ticket's work does not end the runs of the lane.
    pub const fn must_complete(&self) -> bool {
        matches!(self, Self::Upkeep)
    }

    /// True when active runs of the lane accept news about their ticket as input.
    pub const fn hears_news(&self) -> bool {
        matches!(self, Self::Change { .. } | Self::Talk)
    }

    /// The name in logs and spans.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }
}

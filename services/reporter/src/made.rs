//! What effects made: their receipts in the ledger.

use domain::{ChangedFile, CommitId, Job, ObjectRef, PullRequestRef};
use serde::{Deserialize, Serialize};

/// What the effects of one report have made so far; each effect's part is also its receipt in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Made {
    /// The head that is on the remote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pushed: Option<CommitId>,
    /// The comments that began threads of a research, with the numbers of their questions, from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) threads: Vec<(usize, String)>,
    /// The work that begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) begun: Option<Job>,
    /// The pull request that is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pull_request: Option<PullRequestRef>,
    /// What became of the transition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) moved: Option<Moved>,
    /// The comment that was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) comment: Option<String>,
    /// The change that people are asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shown: Option<Shown>,
    /// What the pull request changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<Changed>,
    /// What should report on the pull request and has not; it stays a draft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) awaited: Option<String>,
    /// Our check run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check_run: Option<u64>,
    /// The issues that were opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) issues: Vec<MadeIssue>,
    /// What became of failed jobs that were to run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rerun: Option<Rerun>,
    /// Why the ticket has no link to the pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unlinked: Option<String>,
    /// The key of the ticket that this one is linked with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) linked: Option<String>,
    /// What a triage chose and is left to people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left: Vec<Left>,
}

/// An issue that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MadeIssue {
    /// What links of issues name it by.
    pub(crate) id: u64,
    /// Its number in the repository.
    pub(crate) number: u64,
    /// Link for people.
    pub(crate) url: String,
    /// As it was planned.
    pub(crate) title: String,
}

/// What became of one effect.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) made: Made,
    pub(crate) how: How,
}

/// How an effect came to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The ledger knew.
    Known,
    /// The outside showed it.
    Found,
    /// It was done now.
    Created,
}

/// A change as people see it before it is pushed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shown {
    /// The commit that would be pushed.
    pub(crate) head: CommitId,
    /// All of it, in git's format.
    pub(crate) diff: ObjectRef,
    /// How many files differ.
    pub(crate) files: usize,
    /// What a comment shows of it.
    pub(crate) excerpt: String,
    /// How many lines a comment does not show.
    pub(crate) hidden_lines: usize,
    /// Of which files.
    pub(crate) hidden_files: Vec<String>,
}

/// What of a pull request's change fits into a comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Changed {
    /// The first files; those whose difference does not fit have none.
    pub(crate) files: Vec<ChangedFile>,
    /// How many there are.
    pub(crate) total: usize,
}

impl Made {
    /// Adds what a later effect made.
    pub(crate) fn merge(&mut self, later: Self) {
        self.threads.extend(later.threads);
        self.begun = later.begun.or(self.begun.take());
        self.pushed = later.pushed.or(self.pushed.take());
        self.pull_request = later.pull_request.or(self.pull_request.take());
        self.moved = later.moved.or(self.moved.take());
        self.comment = later.comment.or(self.comment.take());
        self.shown = later.shown.or(self.shown.take());
        self.changed = later.changed.or(self.changed.take());
        self.awaited = later.awaited.or(self.awaited.take());
        self.check_run = later.check_run.or(self.check_run.take());
        self.issues.extend(later.issues);
        self.rerun = later.rerun.or(self.rerun.take());
        self.unlinked = later.unlinked.or(self.unlinked.take());
        self.linked = later.linked.or(self.linked.take());
        self.left.extend(later.left);
    }
}

/// What became of failed jobs that were to run again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rerun {
    /// Some run now.
    Started,
    /// They had run again before, or run already.
    Before,
    /// GitHub refused it.
    Refused {
        /// GitHub's reason.
        detail: String,
    },
}

/// Something that a triage chose for a ticket and that is not set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Left {
    /// What was chosen.
    pub(crate) wish: Wish,
    /// Why it is not set.
    pub(crate) why: Why,
}

/// What a triage chose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wish {
    /// The type of issue.
    Type { name: String },
    /// How urgent it is.
    Priority { name: String },
    /// A place in a project.
    Project { owner: String, number: u64 },
    /// The value of a field of the project.
    Field { name: String, value: String },
    /// A link with another ticket.
    Link { to: String },
}

/// Why what a triage chose is not set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Why {
    /// The rules only let it be suggested.
    Suggested,
    /// It has another one, which stays.
    Has { current: String },
    /// The settings have no token for projects.
    NoToken,
    /// The project has no such field.
    NoField,
    /// The field cannot have the value.
    NoValue,
    /// The site has no such type of link.
    NoLinkType { name: String },
    /// The outside refuses it.
    Refused { detail: String },
}

impl Left {
    /// Only that something is left.
    pub(crate) fn because(wish: Wish, why: Why) -> Made {
        Made {
            left: vec![Self { wish, why }],
            ..Made::default()
        }
    }
}

/// What became of a transition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Moved {
    /// It has this status now.
    To(String),
    /// The workflow offers no way to it from where the issue is.
    Unavailable {
        /// The status that was wanted.
        wanted: String,
        /// The status that the issue keeps.
        status: String,
        /// Statuses that can be reached from there.
        reachable: Vec<String>,
    },
    /// Jira refused it.
    Refused {
        /// The status that was wanted.
        wanted: String,
        /// Jira's reason.
        detail: String,
        /// The fields that a person has to fill in for it.
        #[serde(default)]
        asks_for: Vec<String>,
    },
}

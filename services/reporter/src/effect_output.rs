//! Results of effects, which are also their receipts in the ledger.

use domain::{CommitId, Job, ObjectRef, PullRequestFile, PullRequestRef};
use serde::{Deserialize, Serialize};

/// Results of the effects of one report. Each effect fills its part, and stores this part as its receipt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EffectOutput {
    /// Head of the remote branch after the push.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pushed: Option<CommitId>,
    /// Comments that began threads of a research, with the index of their question, from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) threads: Vec<(usize, String)>,
    /// Job of the work that begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) begun: Option<Job>,
    /// Pull request that is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pull_request: Option<PullRequestRef>,
    /// Result of the transition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) moved: Option<TransitionResult>,
    /// Id of the comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) comment: Option<String>,
    /// Change that people decide about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shown: Option<ShownChange>,
    /// Changed files of the pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<ChangedFiles>,
    /// Missing check: the CI file or required check that has not reported. The pull request stays a draft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) awaited: Option<String>,
    /// Id of our check run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check_run: Option<u64>,
    /// Issues that were opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) issues: Vec<MadeIssue>,
    /// Result of the restart of failed jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rerun: Option<RerunResult>,
    /// Reason why the ticket has no link to the pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unlinked: Option<String>,
    /// Key of the ticket that this one is linked to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) linked: Option<String>,
    /// Choices of a triage that are left to people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left: Vec<UnsetChoice>,
}

/// Issue that the report opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MadeIssue {
    /// Database id of the issue, which links between issues use.
    pub(crate) id: u64,
    /// Number of the issue in its repository.
    pub(crate) number: u64,
    /// Address of the issue's page.
    pub(crate) url: String,
    /// Title of the issue in the plan.
    pub(crate) title: String,
}

/// Result of one effect, and its origin.
#[derive(Debug)]
pub(crate) struct SettledEffect {
    pub(crate) made: EffectOutput,
    pub(crate) how: EffectOrigin,
}

/// Origin of an effect's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EffectOrigin {
    /// The ledger had a receipt.
    Known,
    /// GitHub or Jira showed that the effect is done.
    Found,
    /// The effect was performed now.
    Created,
}

/// A change as people see it before its push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShownChange {
    /// Commit that a push would publish.
    pub(crate) head: CommitId,
    /// Whole difference in git's format.
    pub(crate) diff: ObjectRef,
    /// Number of files that differ.
    pub(crate) files: usize,
    /// Part of the difference for a comment.
    pub(crate) excerpt: String,
    /// Number of lines that the comment omits.
    pub(crate) hidden_lines: usize,
    /// Files with omitted lines.
    pub(crate) hidden_files: Vec<String>,
}

/// Changed files of a pull request, as far as a comment has room for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangedFiles {
    /// The first files. A file whose difference is too long has no patch.
    pub(crate) files: Vec<PullRequestFile>,
    /// Number of changed files.
    pub(crate) total: usize,
}

impl EffectOutput {
    /// Adds the results of a later effect.
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

/// Result of a restart of failed jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RerunResult {
    /// Some jobs run now.
    Started,
    /// The jobs were restarted before, or run already.
    Before,
    /// GitHub refused the restart.
    Refused {
        /// Reason that GitHub returned.
        detail: String,
    },
}

/// Choice of a triage that is not set on the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnsetChoice {
    /// The choice.
    pub(crate) wish: TriageWish,
    /// The reason why it is not set.
    pub(crate) why: UnsetReason,
}

/// Choice of a triage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TriageWish {
    /// Type of the issue.
    Type { name: String },
    /// Priority of the issue.
    Priority { name: String },
    /// Membership in a project.
    Project { owner: String, number: u64 },
    /// Value of a project's field.
    Field { name: String, value: String },
    /// Link to another ticket.
    Link { to: String },
}

/// Reason why a choice of a triage is not set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UnsetReason {
    /// The rules permit a suggestion only.
    Suggested,
    /// The ticket has another value, which stays.
    Has { current: String },
    /// The settings have no token for projects.
    NoToken,
    /// The project does not have the field.
    NoField,
    /// The field does not accept the value.
    NoValue,
    /// The Jira site does not have the link type.
    NoLinkType { name: String },
    /// GitHub or Jira refused it.
    Refused { detail: String },
}

impl UnsetChoice {
    /// Builds the result for one choice that is not set.
    pub(crate) fn because(wish: TriageWish, why: UnsetReason) -> EffectOutput {
        EffectOutput {
            left: vec![Self { wish, why }],
            ..EffectOutput::default()
        }
    }
}

/// Result of a transition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TransitionResult {
    /// The issue has this status.
    To(String),
    /// The workflow has no transition to the status from the current one.
    Unavailable {
        /// Status that the report requested.
        wanted: String,
        /// Current status of the issue.
        status: String,
        /// Statuses that the workflow offers from the current one.
        reachable: Vec<String>,
    },
    /// Jira refused the transition.
    Refused {
        /// Status that the report requested.
        wanted: String,
        /// Reason that Jira returned.
        detail: String,
        /// Fields of the screen that a person has to fill in.
        #[serde(default)]
        asks_for: Vec<String>,
    },
}

//! Observation of a pull request: everything that can keep it from being merged.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    identity::{commit::CommitId, time::Timestamp},
    journal::record_format::is_default,
    rules::ci::CiRules,
    trigger::pull_request::PullRequestStatus,
};

/// Everything that can keep a pull request from being merged, read at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequestSnapshot {
    /// Open, merged or closed.
    pub status: PullRequestStatus,
    /// True while it is a draft.
    pub is_draft: bool,
    /// Commit at the head.
    pub head: CommitId,
    /// Branch that it would be merged into, with its commit at the time of the observation.
    pub base: BaseTip,
    /// Combination of the head with the base.
    pub merge: MergeState,
    /// Place in the merge queue, and the last removal from it.
    pub queue: QueueState,
    /// Checks of the head.
    pub checks: HeadChecks,
    /// Reviews and threads.
    pub reviews: ReviewState,
    /// Conditions that the base branch sets for a merge.
    pub requirements: BaseRequirements,
    /// True when a commit of the pull request has no verified signature; read only where signatures are required.
    pub is_unsigned: bool,
    /// True when the repository is archived, thus read-only.
    pub is_archived: bool,
}

/// Base branch of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseTip {
    /// Name of the branch.
    pub branch: String,
    /// Commit at its tip.
    pub commit: CommitId,
    /// Number of commits of the base that the head lacks; absent when it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_by: Option<u64>,
}

/// Combination of the head with the base, as GitHub computes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeState {
    /// GitHub has not computed it yet.
    #[default]
    Unknown,
    /// It can be merged.
    Clean,
    /// It can be merged, although a check that is not required has not passed.
    Unstable,
    /// The head lacks commits of the base, and the base branch requires them.
    Behind,
    /// A condition of the base branch is not met.
    Blocked,
    /// Head and base changed the same lines.
    Conflicting,
    /// It is a draft, and nothing else is known.
    Draft,
}

/// Merge queue, as far as it concerns one pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Entry of the pull request; absent: it is not queued.
    pub entry: Option<QueueEntry>,
    /// Last removal of the pull request.
    pub removal: Option<QueueRemoval>,
    /// Merge that GitHub makes by itself once the conditions are met; absent: auto-merge is off.
    pub auto_merge: Option<AutoMerge>,
}

/// Auto-merge of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoMerge {
    /// Login of the person who enabled it.
    pub by: String,
    /// Way of the merge: `merge`, `squash` or `rebase`.
    pub method: String,
}

/// Approvals that a base branch requires of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalCount {
    /// Number of required approvals.
    pub required: u32,
    /// Number of given approvals.
    pub given: u32,
    /// True when an owner of each changed file has to approve.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by_owners: bool,
    /// True when no approval is about the last push, and the branch requires one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lacks_last_push: bool,
    /// Logins and teams whose review is requested and pending; GitHub adds the owners of the changed files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requested: Vec<String>,
}

impl ApprovalCount {
    /// Returns true while approvals are missing, as far as they can be counted.
    pub const fn is_short(&self) -> bool {
        self.given < self.required || self.lacks_last_push
    }

    /// Describes the missing approvals: "2 approvals are required, 1 is given".
    pub fn words(&self) -> String {
        let given = match self.given {
            0 => "none is given".to_owned(),
            1 => "1 is given".to_owned(),
            number => format!("{number} are given"),
        };
        let count = match self.required {
            0 => None,
            1 => Some(format!("1 approval is required, {given}")),
            number => Some(format!("{number} approvals are required, {given}")),
        };
        let last_push =
            (self.lacks_last_push && self.given > 0).then(|| "the last push needs an approval".to_owned());
        let owners = self
            .by_owners
            .then(|| "code owners of the changed files have to approve".to_owned());
        let requested = (!self.requested.is_empty())
            .then(|| format!("review requested from {}", self.requested.join(", ")));
        let parts = [count, last_push, owners, requested].into_iter().flatten();
        parts.collect::<Vec<_>>().join("; ")
    }
}

impl PullRequestSnapshot {
    /// Returns the approvals that the base branch requires; `None` where it requires none.
    pub fn approval_count(&self) -> Option<ApprovalCount> {
        self.requirements.count_approvals(&self.reviews)
    }

    /// Removes the checks and workflow runs that the rules ignore, also from the required ones. Returns their names.
    pub fn ignore_checks(&mut self, rules: &CiRules) -> Vec<String> {
        let HeadChecks { checks, runs } = &mut self.checks;
        let of_checks = checks.iter().map(|check| &check.name);
        let ignored: BTreeSet<String> = of_checks
            .chain(runs.iter().map(|run| &run.name))
            .filter(|name| rules.is_check_ignored(name))
            .cloned()
            .collect();
        checks.retain(|check| !ignored.contains(&check.name));
        runs.retain(|run| !ignored.contains(&run.name));
        let required = &mut self.requirements.checks;
        required.retain(|name| !rules.is_check_ignored(name));
        ignored.into_iter().collect()
    }
}

/// Entry of a pull request in the merge queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueEntry {
    /// Position in the queue, from 1.
    pub position: u64,
    /// Time at which it was added.
    pub since: Timestamp,
    /// Commit that the queue tests; absent before its checks start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
}

/// Removal of a pull request from the merge queue without a merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRemoval {
    /// Reason of the removal.
    pub reason: RemovalReason,
    /// Time of the removal.
    pub at: Timestamp,
    /// Commit that the queue tested; absent when GitHub does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
}

/// Reason for which a pull request left the merge queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemovalReason {
    /// A check of the queue's commit failed or timed out.
    Checks,
    /// The pull request conflicts with its base or with an entry before it.
    Conflict,
    /// A person removed it.
    Person,
    /// The branch rules, the queue's settings or an error of GitHub removed it.
    Other,
}

/// Checks of a head commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadChecks {
    /// Check runs and commit statuses.
    pub checks: Vec<ObservedCheck>,
    /// Runs of GitHub Actions, including those that have no check run yet.
    pub runs: Vec<ObservedWorkflowRun>,
}

/// One check of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedCheck {
    /// Name of the check.
    pub name: String,
    /// Result; absent while it runs or waits.
    pub result: Option<CheckResult>,
    /// Time of its end.
    pub ended_at: Option<Timestamp>,
}

/// Result of a check, as far as a merge depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// It does not block a merge.
    Good,
    /// It blocks a merge where it is required.
    Bad,
}

/// Run of GitHub Actions for a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedWorkflowRun {
    /// Name of its workflow.
    pub name: String,
    /// Progress of the run.
    pub progress: WorkflowRunProgress,
}

/// Progress of a GitHub Actions run for a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowRunProgress {
    /// A maintainer has to approve the run first; until then it creates no check run.
    AwaitsApproval,
    /// The run is queued or running.
    UnderWay,
    /// The run has ended with any result.
    Ended,
}

/// Reviews and threads of a pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewState {
    /// Number of people whose last judgment approves the pull request.
    pub approvals: u32,
    /// Number of those whose approval is about the present head.
    pub approvals_of_head: u32,
    /// Logins of people whose last judgment requests changes.
    pub change_requests: Vec<String>,
    /// Logins and teams whose review is requested and pending.
    pub requested: Vec<String>,
    /// Number of unresolved threads; absent when they were not counted.
    pub open_threads: Option<u32>,
}

/// Conditions that a base branch sets for a merge, by protection and by rulesets, as far as they can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseRequirements {
    /// Names of the checks that have to pass.
    pub checks: Vec<String>,
    /// Number of required approvals.
    pub approvals: u32,
    /// Conditions without a value.
    pub conditions: Vec<BaseCondition>,
}

/// Condition of a base branch without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseCondition {
    /// The head contains the tip of the base.
    CurrentBase,
    /// Every commit has a verified signature.
    SignedCommits,
    /// Every thread is resolved.
    ResolvedThreads,
    /// The base contains no merge commit.
    LinearHistory,
    /// Merges go through the merge queue.
    MergeQueue,
    /// An owner of each changed file approves.
    CodeOwnerReview,
    /// A person other than the last one who pushed approves the last push.
    LastPushApproval,
}

impl BaseRequirements {
    /// Returns true when the branch sets the condition.
    pub fn includes(&self, condition: BaseCondition) -> bool {
        self.conditions.contains(&condition)
    }

    /// Counts the approvals that the branch requires; `None` where it requires none.
    pub fn count_approvals(&self, reviews: &ReviewState) -> Option<ApprovalCount> {
        let by_owners = self.includes(BaseCondition::CodeOwnerReview);
        let required = self.approvals;
        (required > 0 || by_owners).then(|| ApprovalCount {
            required,
            given: reviews.approvals,
            by_owners,
            lacks_last_push: required > 0
                && self.includes(BaseCondition::LastPushApproval)
                && reviews.approvals_of_head == 0,
            requested: reviews.requested.clone(),
        })
    }
}

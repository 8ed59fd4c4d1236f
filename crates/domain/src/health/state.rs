//! State of a pull request on its way to a merge, with the reason against a merge and the next step.

use serde::{Deserialize, Serialize};

use crate::identity::{commit::CommitId, time::Timestamp};

/// Result of an assessment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// State of the pull request.
    pub state: HealthState,
    /// Next step; absent when nothing has to be done now.
    pub step: Option<HealthStep>,
}

/// State of a pull request on its way to a merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum HealthState {
    /// It is merged.
    Merged,
    /// It is closed without a merge.
    Closed,
    /// Nothing keeps it from being merged.
    Ready,
    /// The merge queue tests it.
    Queued {
        /// Time at which it entered the queue.
        since: Timestamp,
    },
    /// Something is under way that needs no person.
    Waiting {
        /// Reason of the wait.
        cause: HealthCause,
        /// Start of the wait.
        since: Timestamp,
        /// Time at which people receive a notice.
        until: Timestamp,
    },
    /// It cannot be merged before the named party acts.
    Blocked {
        /// Reason of the block.
        cause: HealthCause,
        /// Time at which the reason was first seen.
        since: Timestamp,
        /// Party that has to act.
        who: HealthActor,
    },
}

/// Reason that keeps a pull request from being merged.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum HealthCause {
    /// The repository is archived.
    Archived,
    /// A check of the merge queue's commit failed.
    QueueChecks,
    /// The merge queue found a conflict.
    QueueConflict,
    /// The merge queue removed the pull request for another reason.
    QueueRemoval,
    /// Head and base changed the same lines.
    Conflict,
    /// Workflow runs wait for the approval of a maintainer.
    RunApproval,
    /// A check failed.
    FailedChecks,
    /// A check has not ended.
    PendingChecks,
    /// No check has reported.
    AbsentChecks,
    /// A required check has not reported.
    RequiredChecks,
    /// It is a draft.
    Draft,
    /// The head lacks commits of the base.
    OutdatedBase,
    /// A reviewer requests changes.
    ChangeRequests,
    /// Approvals are missing.
    Approvals,
    /// Threads are not resolved.
    OpenThreads,
    /// Signatures are missing.
    Signatures,
    /// A condition of the base branch is not met that Journeyman cannot read.
    Protection,
    /// GitHub has not computed whether it can be merged.
    Mergeability,
}

/// Party that has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum HealthActor {
    /// Journeyman.
    Journeyman,
    /// A person with write permission.
    Maintainer,
    /// A reviewer of the pull request.
    Reviewer,
}

/// Next step for a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthStep {
    /// End the draft.
    MarkReady(HandoverChecks),
    /// Repair or rerun the failed checks of the head.
    RepairChecks,
    /// Repair the failed checks of the merge queue's commit.
    RepairQueue {
        /// Commit that the queue tested.
        commit: CommitId,
    },
    /// Bring the head up to date with the base.
    UpdateBase,
    /// Resolve the conflict with the base.
    ResolveConflict,
    /// Notify people about the cause, once per head.
    Notify(HealthCause),
    /// Check whether a reminder of the review is due.
    Remind,
}

/// Checks of a draft that becomes ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandoverChecks {
    /// Every check passed.
    Passed,
    /// No check has reported, and the rules accept that.
    Absent,
    /// Those that ended passed. The others may wait for the end of the draft.
    Unfinished,
}

impl HealthCause {
    /// The name in keys and in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns true when a new commit on the base makes another step necessary.
    pub(crate) const fn depends_on_base(self) -> bool {
        match self {
            Self::Conflict | Self::OutdatedBase => true,
            Self::Archived
            | Self::QueueChecks
            | Self::QueueConflict
            | Self::QueueRemoval
            | Self::RunApproval
            | Self::FailedChecks
            | Self::PendingChecks
            | Self::AbsentChecks
            | Self::RequiredChecks
            | Self::Draft
            | Self::ChangeRequests
            | Self::Approvals
            | Self::OpenThreads
            | Self::Signatures
            | Self::Protection
            | Self::Mergeability => false,
        }
    }

    /// Returns true for a removal from the merge queue.
    pub const fn is_about_queue(self) -> bool {
        match self {
            Self::QueueChecks | Self::QueueConflict | Self::QueueRemoval => true,
            Self::Archived
            | Self::Conflict
            | Self::RunApproval
            | Self::FailedChecks
            | Self::PendingChecks
            | Self::AbsentChecks
            | Self::RequiredChecks
            | Self::Draft
            | Self::OutdatedBase
            | Self::ChangeRequests
            | Self::Approvals
            | Self::OpenThreads
            | Self::Signatures
            | Self::Protection
            | Self::Mergeability => false,
        }
    }

    /// Returns true when people know the cause from the handover or from their own review.
    pub(crate) const fn is_announced(self) -> bool {
        match self {
            Self::ChangeRequests | Self::Approvals => true,
            Self::Archived
            | Self::QueueChecks
            | Self::QueueConflict
            | Self::QueueRemoval
            | Self::Conflict
            | Self::RunApproval
            | Self::FailedChecks
            | Self::PendingChecks
            | Self::AbsentChecks
            | Self::RequiredChecks
            | Self::Draft
            | Self::OutdatedBase
            | Self::OpenThreads
            | Self::Signatures
            | Self::Protection
            | Self::Mergeability => false,
        }
    }
}

impl HealthActor {
    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl HealthState {
    /// Returns the reason of a wait or a block.
    pub const fn cause(&self) -> Option<HealthCause> {
        match self {
            Self::Waiting { cause, .. } | Self::Blocked { cause, .. } => Some(*cause),
            Self::Merged | Self::Closed | Self::Ready | Self::Queued { .. } => None,
        }
    }
}

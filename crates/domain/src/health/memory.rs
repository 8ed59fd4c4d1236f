//! Memory of earlier assessments of a pull request, and the stored record of the last one.

use serde::{Deserialize, Serialize};

use crate::{
    health::{
        snapshot::{ApprovalCount, AutoMerge, BaseTip, PullRequestSnapshot},
        state::{Assessment, HealthCause, HealthState, HealthStep},
    },
    identity::{commit::CommitId, time::Timestamp},
    journal::{kind::RecordKind, record_format::StoredRecord},
    trigger::pull_request::PullRequestRef,
};

/// Memory of earlier assessments of a pull request. Another head forgets everything except for the queue's removal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthMemory {
    /// Head of the remembered assessments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<CommitId>,
    /// Present cause with the time at which it was first seen, and the start of the wait for a first check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<RememberedCause>,
    /// Requested steps with the base at that time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requested: Vec<RequestedStep>,
    /// Causes with a notice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noticed: Vec<HealthCause>,
    /// Last removal from the merge queue, with the head at the time that it was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<RememberedRemoval>,
    /// Commit that the merge queue tested last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_commit: Option<CommitId>,
}

/// Cause with the time at which it was first seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedCause {
    /// The cause.
    pub cause: HealthCause,
    /// First time at which it was seen.
    pub at: Timestamp,
}

/// Step that was requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedStep {
    /// Cause that the step removes.
    pub cause: HealthCause,
    /// Commit at the tip of the base at that time.
    pub base: CommitId,
    /// Time of the request.
    pub at: Timestamp,
}

/// Result of the step of an assessment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// Nothing was appended to the ticket's log, for example because of a skip label.
    NotTaken,
    /// The step was appended to the ticket's log.
    Requested,
    /// A notice to people was appended instead of the step, for example because a limit is reached.
    LeftToPeople,
}

/// Removal from the merge queue with the head at that time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedRemoval {
    /// Time of the removal.
    pub at: Timestamp,
    /// Head that was removed.
    pub head: CommitId,
}

impl HealthMemory {
    /// Returns the memory for an assessment of the snapshot: that of another head is empty.
    #[must_use]
    pub(crate) fn for_snapshot(&self, snapshot: &PullRequestSnapshot) -> Self {
        let mut memory = if self.head.as_ref() == Some(&snapshot.head) {
            self.clone()
        } else {
            Self {
                head: Some(snapshot.head.clone()),
                removal: self.removal.clone(),
                queue_commit: self.queue_commit.clone(),
                ..Self::default()
            }
        };
        if let Some(removal) = &snapshot.queue.removal
            && memory.removal.as_ref().is_none_or(|known| known.at != removal.at)
        {
            memory.forget_queue();
            memory.removal = Some(RememberedRemoval {
                at: removal.at,
                head: snapshot.head.clone(),
            });
        }
        if let Some(commit) = snapshot
            .queue
            .entry
            .as_ref()
            .and_then(|entry| entry.commit.clone())
        {
            memory.queue_commit = Some(commit);
        }
        memory
    }

    /// Forgets earlier removals from the queue: people may add the same head again, and each removal needs its own step.
    fn forget_queue(&mut self) {
        self.seen.retain(|known| !known.cause.is_about_queue());
        self.requested.retain(|known| !known.cause.is_about_queue());
        self.noticed.retain(|cause| !cause.is_about_queue());
    }

    /// Returns true when the last removal from the queue concerns the present head.
    pub(crate) fn is_removed(&self) -> bool {
        let removed = self.removal.as_ref().map(|removal| &removal.head);
        removed.is_some() && removed == self.head.as_ref()
    }

    /// Returns the first time at which the cause was seen without an interruption; `now` for a new one.
    pub(crate) fn first_seen(&self, cause: HealthCause, now: Timestamp) -> Timestamp {
        let known = self.seen.iter().find(|known| known.cause == cause);
        known.map_or(now, |known| known.at)
    }

    /// Returns the time at which a step against the cause was requested; `None` for another base, where the cause
    /// depends on it.
    pub(crate) fn requested_at(&self, cause: HealthCause, base: &CommitId) -> Option<Timestamp> {
        let is_it =
            |step: &&RequestedStep| step.cause == cause && (!cause.depends_on_base() || step.base == *base);
        self.requested.iter().rev().find(is_it).map(|step| step.at)
    }

    /// Returns true when people received a notice about the cause.
    pub(crate) fn has_noticed(&self, cause: HealthCause) -> bool {
        self.noticed.contains(&cause)
    }

    /// Returns the memory after an assessment and its step.
    #[must_use]
    pub fn after(
        &self,
        snapshot: &PullRequestSnapshot,
        assessment: &Assessment,
        result: StepResult,
        now: Timestamp,
    ) -> Self {
        let mut memory = self.for_snapshot(snapshot);
        let present = assessment.state.cause();
        // The wait for a first check is over only once on a head, whatever follows it.
        memory
            .seen
            .retain(|known| known.cause == HealthCause::AbsentChecks || Some(known.cause) == present);
        match &assessment.state {
            HealthState::Waiting { cause, since, .. } | HealthState::Blocked { cause, since, .. } => {
                if !memory.seen.iter().any(|known| known.cause == *cause) {
                    memory.seen.push(RememberedCause {
                        cause: *cause,
                        at: *since,
                    });
                }
            }
            HealthState::Merged | HealthState::Closed | HealthState::Ready | HealthState::Queued { .. } => {}
        }
        let is_taken = result != StepResult::NotTaken;
        let Some(step) = assessment.step.as_ref().filter(|_| is_taken) else {
            return memory;
        };
        match step {
            HealthStep::Notify(cause) => memory.noticed.push(*cause),
            HealthStep::Remind => {}
            HealthStep::MarkReady(_)
            | HealthStep::RepairChecks
            | HealthStep::RepairQueue { .. }
            | HealthStep::UpdateBase
            | HealthStep::ResolveConflict => {
                if let Some(cause) = present {
                    // A notice about an earlier base says nothing about this request.
                    memory.noticed.retain(|noticed| *noticed != cause);
                    if result == StepResult::LeftToPeople {
                        memory.noticed.push(cause);
                    }
                    memory.requested.retain(|known| known.cause != cause);
                    memory.requested.push(RequestedStep {
                        cause,
                        base: snapshot.base.commit.clone(),
                        at: now,
                    });
                }
            }
        }
        memory
    }
}

/// Last assessment of a pull request of Journeyman. Ingest writes it; the API shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthRecord {
    /// The assessed pull request.
    pub pull_request: PullRequestRef,
    /// State at that time.
    pub state: HealthState,
    /// Base at that time.
    pub base: BaseTip,
    /// Approvals that the base branch requires; absent: none, or the record is older than the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<ApprovalCount>,
    /// Auto-merge of the pull request; absent: off, or the record is older than the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_merge: Option<AutoMerge>,
    /// Names of the checks and workflow runs of the head that the rules ignore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_checks: Vec<String>,
    /// Memory for the next assessment.
    #[serde(default)]
    pub memory: HealthMemory,
    /// Time of the assessment.
    pub at: Timestamp,
}

impl StoredRecord for HealthRecord {
    const KIND: RecordKind = RecordKind::Control;
}

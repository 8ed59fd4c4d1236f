//! Assessment of a pull request: what keeps it from being merged, who acts, and at most one next step.

use std::time::Duration;

use crate::{
    health::{
        check_verdict::{CheckVerdict, SnapshotChecks, can_wait_for_handover, find_last_end, judge_checks},
        memory::HealthMemory,
        rules::{BaseUpdateRule, HealthRules},
        snapshot::{
            BaseCondition, MergeState, PullRequestSnapshot, QueueRemoval, RemovalReason, WorkflowRunProgress,
        },
        state::{Assessment, HandoverChecks, HealthActor, HealthCause, HealthState, HealthStep},
    },
    identity::time::Timestamp,
    trigger::pull_request::PullRequestStatus,
};

/// Assesses a pull request. Pure: the caller passes the observation, the memory and the time.
pub fn assess(
    snapshot: &PullRequestSnapshot,
    rules: &HealthRules,
    memory: &HealthMemory,
    now: Timestamp,
) -> Assessment {
    let of = HealthJudge {
        snapshot,
        rules,
        memory: memory.for_snapshot(snapshot),
        now,
    };
    of.assess_place()
        .or_else(|| of.assess_merge_conflict())
        .or_else(|| of.assess_checks())
        .or_else(|| of.assess_base())
        .or_else(|| of.assess_reviews())
        .or_else(|| of.assess_conditions())
        .unwrap_or_else(|| settle(HealthState::Ready))
}

/// Result without a step.
const fn settle(state: HealthState) -> Assessment {
    Assessment { state, step: None }
}

/// One assessment, divided by subject. The first subject with a result decides.
struct HealthJudge<'a> {
    snapshot: &'a PullRequestSnapshot,
    rules: &'a HealthRules,
    memory: HealthMemory,
    now: Timestamp,
}

impl HealthJudge<'_> {
    /// End, archive and merge queue: nothing else counts there.
    fn assess_place(&self) -> Option<Assessment> {
        match self.snapshot.status {
            PullRequestStatus::Merged => return Some(settle(HealthState::Merged)),
            PullRequestStatus::Closed => return Some(settle(HealthState::Closed)),
            PullRequestStatus::Open => {}
        }
        if self.snapshot.is_archived {
            return Some(self.block(HealthCause::Archived, HealthActor::Maintainer));
        }
        if let Some(entry) = &self.snapshot.queue.entry {
            return Some(settle(HealthState::Queued { since: entry.since }));
        }
        let removal = self.snapshot.queue.removal.as_ref();
        removal
            .filter(|_| self.memory.is_removed())
            .and_then(|removal| self.assess_removal(removal))
    }

    /// Removal of the present head from the merge queue. Its own checks are green, so only the queue knows the failure.
    fn assess_removal(&self, removal: &QueueRemoval) -> Option<Assessment> {
        match removal.reason {
            RemovalReason::Checks => {
                let tested = removal.commit.as_ref().or(self.memory.queue_commit.as_ref());
                Some(match tested.cloned() {
                    Some(commit) => self.act(HealthCause::QueueChecks, HealthStep::RepairQueue { commit }),
                    None => self.block(HealthCause::QueueChecks, HealthActor::Maintainer),
                })
            }
            // A conflict with an entry before it becomes one with the base when that entry is merged.
            RemovalReason::Conflict => (self.snapshot.merge != MergeState::Conflicting)
                .then(|| self.wait(HealthCause::QueueConflict, self.rules.limits.mergeability)),
            RemovalReason::Person | RemovalReason::Other => {
                Some(self.block(HealthCause::QueueRemoval, HealthActor::Maintainer))
            }
        }
    }

    fn assess_merge_conflict(&self) -> Option<Assessment> {
        (self.snapshot.merge == MergeState::Conflicting)
            .then(|| self.act(HealthCause::Conflict, HealthStep::ResolveConflict))
    }

    /// Checks of the head, and the draft that waits for them.
    fn assess_checks(&self) -> Option<Assessment> {
        let facts = SnapshotChecks {
            head: &self.snapshot.checks,
            requirements: &self.snapshot.requirements,
        };
        let limits = &self.rules.limits;
        let Ok(verdict) = judge_checks(&facts, limits, self.now);
        match verdict {
            CheckVerdict::AwaitsApproval => {
                Some(self.block(HealthCause::RunApproval, HealthActor::Maintainer))
            }
            CheckVerdict::Failed => Some(self.act(HealthCause::FailedChecks, HealthStep::RepairChecks)),
            CheckVerdict::Pending { .. } | CheckVerdict::Settling { .. } => {
                Some(self.assess_unfinished_checks())
            }
            CheckVerdict::RequiredMissing { .. } => {
                Some(self.wait(HealthCause::RequiredChecks, limits.required))
            }
            CheckVerdict::Absent => self.assess_absent_checks(),
            CheckVerdict::Passed => self.assess_draft(HandoverChecks::Passed),
        }
    }

    /// Checks that have not ended. Some end only after the draft does, so they cannot keep it for ever: after a limit
    /// without progress, the draft ends.
    fn assess_unfinished_checks(&self) -> Assessment {
        let cause = HealthCause::PendingChecks;
        let limit = self.rules.limits.pending;
        let since = self.memory.first_seen(cause, self.now);
        let requested = self.memory.requested_at(cause, &self.snapshot.base.commit);
        // An earlier wait on this head has its own request.
        let is_requested = requested.is_some_and(|at| at >= since);
        let checks = &self.snapshot.checks.checks;
        let is_held_by_draft =
            self.snapshot.is_draft && can_wait_for_handover(checks, &self.snapshot.requirements.checks);
        if !is_requested && !is_held_by_draft {
            return self.wait(cause, limit);
        }
        let progress = find_last_end(checks, self.now).unwrap_or(since);
        let until = since.max(progress).plus(limit);
        if is_requested || self.now >= until {
            return self.act(cause, HealthStep::MarkReady(HandoverChecks::Unfinished));
        }
        self.wait_from(cause, since, until)
    }

    /// A head without any check: one may still report, and a required one has to.
    fn assess_absent_checks(&self) -> Option<Assessment> {
        let limits = &self.rules.limits;
        let mut runs = self.snapshot.checks.runs.iter();
        if runs.any(|run| run.progress == WorkflowRunProgress::UnderWay) {
            return Some(self.wait(HealthCause::PendingChecks, limits.pending));
        }
        if !self.snapshot.requirements.checks.is_empty() {
            return Some(self.wait(HealthCause::RequiredChecks, limits.absent));
        }
        let since = self.memory.first_seen(HealthCause::AbsentChecks, self.now);
        if self.now >= since.plus(limits.absent) && self.rules.may_lack_checks {
            return self.assess_draft(HandoverChecks::Absent);
        }
        Some(self.wait(HealthCause::AbsentChecks, limits.absent))
    }

    fn assess_draft(&self, checks: HandoverChecks) -> Option<Assessment> {
        self.snapshot
            .is_draft
            .then(|| self.act(HealthCause::Draft, HealthStep::MarkReady(checks)))
    }

    /// Base that moved on.
    fn assess_base(&self) -> Option<Assessment> {
        let is_behind = self.snapshot.merge == MergeState::Behind
            || self.snapshot.base.ahead_by.is_some_and(|commits| commits > 0);
        let is_required = self.snapshot.merge == MergeState::Behind
            || self.snapshot.requirements.includes(BaseCondition::CurrentBase);
        if !is_behind {
            return None;
        }
        match self.rules.update_base {
            BaseUpdateRule::Never if is_required => {
                Some(self.block(HealthCause::OutdatedBase, HealthActor::Maintainer))
            }
            BaseUpdateRule::WhenRequired if is_required => {
                Some(self.act(HealthCause::OutdatedBase, HealthStep::UpdateBase))
            }
            BaseUpdateRule::Always => Some(self.act(HealthCause::OutdatedBase, HealthStep::UpdateBase)),
            BaseUpdateRule::Never | BaseUpdateRule::WhenRequired => None,
        }
    }

    /// Reviews, which people know about from the handover and from their own words.
    fn assess_reviews(&self) -> Option<Assessment> {
        let reviews = &self.snapshot.reviews;
        if !reviews.change_requests.is_empty() {
            return Some(self.block(HealthCause::ChangeRequests, HealthActor::Reviewer));
        }
        let requirements = &self.snapshot.requirements;
        // Without the permission to read the protection, a pending review explains a block. GitHub requests those of code
        // owners by itself, and does not report which files lack one.
        let is_owner_due =
            requirements.includes(BaseCondition::CodeOwnerReview) || requirements.approvals == 0;
        let is_hidden_review = self.snapshot.merge == MergeState::Blocked
            && is_owner_due
            && (reviews.approvals == 0 || requirements.includes(BaseCondition::CodeOwnerReview))
            && !reviews.requested.is_empty();
        let is_short = self
            .snapshot
            .approval_count()
            .is_some_and(|count| count.is_short());
        if is_short || is_hidden_review {
            return Some(self.block(HealthCause::Approvals, HealthActor::Reviewer));
        }
        let is_open = reviews.open_threads.is_some_and(|open| open > 0)
            && requirements.includes(BaseCondition::ResolvedThreads);
        is_open.then(|| self.block(HealthCause::OpenThreads, HealthActor::Reviewer))
    }

    /// Other conditions of the base branch.
    fn assess_conditions(&self) -> Option<Assessment> {
        if self.snapshot.is_unsigned && self.snapshot.requirements.includes(BaseCondition::SignedCommits) {
            return Some(self.block(HealthCause::Signatures, HealthActor::Maintainer));
        }
        match self.snapshot.merge {
            MergeState::Blocked => Some(self.wait(HealthCause::Protection, self.rules.limits.step)),
            // `draft` of a pull request that is none is an answer from before.
            MergeState::Unknown | MergeState::Draft => {
                Some(self.wait(HealthCause::Mergeability, self.rules.limits.mergeability))
            }
            MergeState::Clean | MergeState::Unstable | MergeState::Behind | MergeState::Conflicting => None,
        }
    }

    /// Requests a step of Journeyman once. Afterwards the pull request waits for its effect, up to a limit, or for people
    /// who received a notice instead.
    fn act(&self, cause: HealthCause, step: HealthStep) -> Assessment {
        let is_left_to_people = self.memory.has_noticed(cause);
        let Some(at) = self.memory.requested_at(cause, &self.snapshot.base.commit) else {
            return Assessment {
                state: HealthState::Blocked {
                    cause,
                    since: self.memory.first_seen(cause, self.now),
                    who: if is_left_to_people {
                        HealthActor::Maintainer
                    } else {
                        HealthActor::Journeyman
                    },
                },
                step: Some(step),
            };
        };
        if is_left_to_people {
            return self.block(cause, HealthActor::Maintainer);
        }
        self.wait_from(
            cause,
            self.memory.first_seen(cause, at),
            at.plus(self.rules.limits.step),
        )
    }

    /// Waits for a change that needs no person, up to a limit.
    fn wait(&self, cause: HealthCause, limit: Duration) -> Assessment {
        let since = self.memory.first_seen(cause, self.now);
        self.wait_from(cause, since, since.plus(limit))
    }

    fn wait_from(&self, cause: HealthCause, since: Timestamp, until: Timestamp) -> Assessment {
        if self.now >= until {
            return self.block(cause, HealthActor::Maintainer);
        }
        settle(HealthState::Waiting { cause, since, until })
    }

    /// Waits for a person, who receives one notice. A cause that people know by themselves is reminded of instead.
    fn block(&self, cause: HealthCause, who: HealthActor) -> Assessment {
        let step = if cause.is_announced() {
            Some(HealthStep::Remind)
        } else if self.memory.has_noticed(cause) {
            None
        } else {
            Some(HealthStep::Notify(cause))
        };
        Assessment {
            state: HealthState::Blocked {
                cause,
                since: self.memory.first_seen(cause, self.now),
                who,
            },
            step,
        }
    }
}

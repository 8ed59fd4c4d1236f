//! Step that the health of our open pull request needs: a base update, a resolved conflict, a repair of the merge queue's
//! failure, or a notice.

use domain::{
    BaseCondition, BaseTip, CommitId, ConflictedBase, HealthCause, HealthStep, OutdatedBase,
    PullRequestEvent, PullRequestRecord, PullRequestRef, PullRequestSnapshot, RepositoryRules, RunId,
    RunStatus, SkipReason, StopReason, TicketKey, Timestamp, Trigger, TriggerKey, TriggerReason, UpdateWay,
};

use super::{EventKind, EventVerdict, NewTrigger, closed::is_closed};
use crate::{
    facts::{DecisionFacts, Need, failed_checks::summarize_failure},
    policy::{repair, resolution, skip},
};

// Time after a refusal that an operator has to resolve, in milliseconds. In it, no push to the base starts a run that would
// be refused again.
const REFUSED_MS: i64 = 24 * 60 * 60 * 1000;

/// Step of an assessment that becomes a trigger of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HealthStepEvent {
    ticket: TicketKey,
    ours: PullRequestRef,
    head: CommitId,
    base: BaseTip,
    since: Timestamp,
    /// Last removal from the merge queue.
    removed_at: Option<Timestamp>,
    step: OwnStep,
}

/// Step that no other kind of event takes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum OwnStep {
    UpdateBase(UpdateWay),
    ResolveConflict,
    RepairQueue(CommitId),
    Notify(HealthCause),
}

impl HealthStepEvent {
    /// Event of an assessment's step; `None` for a step that the events of checks and reviews take.
    pub(crate) fn from_step(
        record: &PullRequestRecord,
        snapshot: &PullRequestSnapshot,
        step: &HealthStep,
        since: Timestamp,
    ) -> Option<Self> {
        let step = match step {
            HealthStep::UpdateBase => {
                let is_linear = snapshot.requirements.includes(BaseCondition::LinearHistory);
                OwnStep::UpdateBase(if is_linear {
                    UpdateWay::Rebase
                } else {
                    UpdateWay::Merge
                })
            }
            HealthStep::ResolveConflict => OwnStep::ResolveConflict,
            HealthStep::RepairQueue { commit } => OwnStep::RepairQueue(commit.clone()),
            HealthStep::Notify(cause) => OwnStep::Notify(*cause),
            HealthStep::MarkReady(_) | HealthStep::RepairChecks | HealthStep::Remind => return None,
        };
        Some(Self {
            ticket: record.ticket.clone(),
            ours: record.pull_request.clone(),
            head: snapshot.head.clone(),
            base: snapshot.base.clone(),
            since,
            removed_at: snapshot.queue.removal.as_ref().map(|removal| removal.at),
            step,
        })
    }

    /// Key of the step: once per head, and once per base or removal where a new one makes another step necessary. `None`
    /// when people know of the conflict already.
    fn key(&self, facts: &DecisionFacts) -> Result<Option<TriggerKey>, Need> {
        let subject = format!("{}#{}:{}", self.ours.repository, self.ours.number, self.head);
        let key = match &self.step {
            OwnStep::UpdateBase(_) => format!("base_update:{subject}:{}", self.base.commit),
            OwnStep::ResolveConflict => return self.conflict_key(&subject, facts),
            OwnStep::RepairQueue(commit) => format!("queue:{subject}:{commit}"),
            OwnStep::Notify(cause) => {
                let removed_at = self.removed_at.filter(|_| cause.is_about_queue());
                let removal = removed_at.map_or_else(String::new, |at| format!(":{}", at.unix_ms()));
                format!("health:{subject}:{}{removal}", cause.as_str())
            }
        };
        Ok(Some(TriggerKey::new(key)))
    }

    /// Key of a resolution or of the report of a conflict. It has no base: two processes that see two tips of the base at
    /// the same moment request one resolution. A later one follows the earlier one by its sequence.
    fn conflict_key(&self, subject: &str, facts: &DecisionFacts) -> Result<Option<TriggerKey>, Need> {
        let history = facts.history(&self.ticket)?;
        let is_of_base = |trigger: &&Trigger| {
            let conflict = self.find_requested_conflict(&trigger.reason);
            conflict.is_some_and(|earlier| earlier.base == self.base.commit)
        };
        if let Some(same) = history.iter().find(is_of_base) {
            return Ok(Some(same.key.clone()));
        }
        let Some(reason) = self.reason(facts)? else {
            return Ok(None);
        };
        let key = match (&reason, self.find_earlier(facts)?) {
            (TriggerReason::PullRequest(PullRequestEvent::Conflicted(report)), _) => {
                let why = report.unresolved.map_or("", <&'static str>::from);
                format!("conflict:{subject}:{why}")
            }
            (_, Some(sequence)) => format!("conflict:{subject}:after:{sequence}"),
            (_, None) => format!("conflict:{subject}"),
        };
        Ok(Some(TriggerKey::new(key)))
    }

    /// Sequence of the last request of the same step of this head.
    fn find_earlier(&self, facts: &DecisionFacts) -> Result<Option<u64>, Need> {
        let mut history = facts.history(&self.ticket)?.iter().rev();
        match history.find(|trigger| self.is_requested_by(&trigger.reason)) {
            Some(earlier) => Ok(*facts.known(&self.ticket, &earlier.key)?),
            None => Ok(None),
        }
    }

    /// Reason against a further run of the same step of this head, for a base that moved on.
    fn find_obstacle(&self, facts: &DecisionFacts) -> Result<Option<&'static str>, Need> {
        const UNDER_WAY: &str = "a run works on this head already";
        let Some(sequence) = self.find_earlier(facts)? else {
            return Ok(None);
        };
        let row = facts.row(&self.ticket)?;
        let Some(run) = row.run(&RunId::new(self.ticket.clone(), sequence)) else {
            // The planner has not handled the request yet.
            return Ok((row.cursor < sequence).then_some(UNDER_WAY));
        };
        Ok(match &run.status {
            // A run takes the tip of the base itself.
            RunStatus::Queued | RunStatus::Active | RunStatus::Parked { .. } => Some(UNDER_WAY),
            RunStatus::Finished {
                reason: StopReason::ReportRefused(refusal),
            } if refusal.needs_operator() => {
                let ended_at = run.finished_at.unwrap_or(run.started_at);
                let is_recent = facts.now.unix_ms() - ended_at.unix_ms() < REFUSED_MS;
                is_recent.then_some("the last run on this head was refused")
            }
            RunStatus::Finished { .. } => None,
        })
    }

    /// True if the reason requests the same step of this head, for any base.
    fn is_requested_by(&self, reason: &TriggerReason) -> bool {
        match &self.step {
            OwnStep::UpdateBase(_) => {
                let TriggerReason::PullRequest(PullRequestEvent::Outdated(earlier)) = reason else {
                    return false;
                };
                earlier.pull_request.is_same(&self.ours) && earlier.head == self.head
            }
            OwnStep::ResolveConflict => self.find_requested_conflict(reason).is_some(),
            OwnStep::RepairQueue(_) | OwnStep::Notify(_) => false,
        }
    }

    /// Conflict of this head whose resolution the reason requests.
    fn find_requested_conflict<'a>(&self, reason: &'a TriggerReason) -> Option<&'a ConflictedBase> {
        let conflict = reason.job_request()?.about.conflict()?;
        (conflict.pull_request.is_same(&self.ours) && conflict.head == self.head).then_some(conflict)
    }

    /// Reason of the trigger; `None` when people know of the conflict already.
    fn reason(&self, facts: &DecisionFacts) -> Result<Option<TriggerReason>, Need> {
        Ok(Some(match &self.step {
            OwnStep::UpdateBase(way) => PullRequestEvent::Outdated(OutdatedBase {
                pull_request: self.ours.clone(),
                head: self.head.clone(),
                base_branch: self.base.branch.clone(),
                way: *way,
            })
            .into(),
            OwnStep::ResolveConflict => {
                let conflict = ConflictedBase::new(
                    self.ours.clone(),
                    self.head.clone(),
                    self.base.commit.clone(),
                    self.base.branch.clone(),
                );
                return resolution::decide_resolution(&self.ticket, conflict, facts);
            }
            OwnStep::RepairQueue(commit) => self.repair_queue(commit, facts)?,
            OwnStep::Notify(cause) => self.notice(*cause),
        }))
    }

    /// Repair of the checks that failed on the queue's commit, required ones first. The failure is not visible on the
    /// head. A rerun there does not bring the pull request back into the queue, so people receive a notice instead.
    fn repair_queue(&self, commit: &CommitId, facts: &DecisionFacts) -> Result<TriggerReason, Need> {
        let mut checks = facts.counted_checks(&self.ours.repository, commit)?.into_owned();
        let is_bad = |check: &github::CommitCheck| check.conclusion.is_some_and(|end| !end.is_good());
        if !checks.iter().any(is_bad) {
            return Ok(self.notice(HealthCause::QueueChecks));
        }
        let required = facts.required(&self.ours.repository, &self.base.branch)?;
        checks.sort_by_key(|check| !required.contains(&check.name));
        let summary = summarize_failure(&self.ours, &self.head, &checks, facts)?;
        if !summary.failed.iter().any(|check| check.class.is_real()) {
            return Ok(self.notice(HealthCause::QueueChecks));
        }
        repair::decide_repair(&self.ticket, summary, facts)
    }

    fn notice(&self, cause: HealthCause) -> TriggerReason {
        TriggerReason::Skipped(SkipReason::MergeWaits {
            pull_request: self.ours.clone(),
            cause,
            base_branch: self.base.branch.clone(),
            since: self.since,
        })
    }
}

/// Rules of a repository that cover the ticket, by the key of its records or by its present one.
fn find_rules<'a>(
    facts: &'a DecisionFacts,
    event: &HealthStepEvent,
) -> Result<Option<&'a RepositoryRules>, Need> {
    Ok(match facts.book.for_repository(&event.ours.repository) {
        Some(rules) if facts.covers(rules, &event.ticket)? => Some(rules),
        Some(_) | None => None,
    })
}

impl EventKind for HealthStepEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let Some(key) = self.key(facts)? else {
            return Ok(EventVerdict::nothing("the conflict is reported already"));
        };
        if let Some(sequence) = facts.known(&self.ticket, &key)? {
            return Ok(EventVerdict::Known(*sequence));
        }
        let Some(rules) = find_rules(facts, self)? else {
            return Ok(EventVerdict::nothing("no rules cover the ticket"));
        };
        let now = facts.pull_request(&self.ours.repository, &self.ours.number)?;
        if is_closed(now) || now.head != self.head {
            return Ok(EventVerdict::nothing("not the open head of the pull request"));
        }
        if skip::find_own_skip(now, rules).is_some() {
            return Ok(EventVerdict::nothing(skip::FORBIDDEN));
        }
        if let Some(obstacle) = self.find_obstacle(facts)? {
            return Ok(EventVerdict::nothing(obstacle));
        }
        let Some(reason) = self.reason(facts)? else {
            return Ok(EventVerdict::nothing("the conflict is reported already"));
        };
        Ok(EventVerdict::from(NewTrigger {
            ticket: self.ticket.clone(),
            key,
            at: facts.now,
            actor: None,
            reason,
        }))
    }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;

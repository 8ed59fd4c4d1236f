//! Step that the health of our open pull request needs: a base update, a resolved conflict, a repair of the merge queue's
//! failure, or a notice.

use domain::{
    BaseCondition, BaseTip, CommitId, ConflictedBase, HealthCause, HealthStep, OutdatedBase,
    PullRequestEvent, PullRequestRecord, PullRequestRef, PullRequestSnapshot, RepositoryRules, RunId,
    RunStatus, SkipReason, TicketKey, Timestamp, TriggerKey, TriggerReason, UpdateWay,
};

use super::{EventKind, EventVerdict, NewTrigger, checks::summarize_failure, closed::is_closed};
use crate::{
    facts::{DecisionFacts, Need},
    policy::{repair, resolution, skip},
};

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
            HealthStep::MarkReady { .. } | HealthStep::RepairChecks | HealthStep::Remind => return None,
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

    /// Key of the step: once per head, and once per base or removal where a new one makes another step necessary.
    fn key(&self) -> TriggerKey {
        let subject = format!("{}#{}:{}", self.ours.repository, self.ours.number, self.head);
        TriggerKey::new(match &self.step {
            OwnStep::UpdateBase(_) => format!("base_update:{subject}:{}", self.base.commit),
            OwnStep::ResolveConflict => format!("conflict:{subject}:{}", self.base.commit),
            OwnStep::RepairQueue(commit) => format!("queue:{subject}:{commit}"),
            OwnStep::Notify(cause) => {
                let removed_at = self.removed_at.filter(|_| cause.is_about_queue());
                let removal = removed_at.map_or_else(String::new, |at| format!(":{}", at.unix_ms()));
                format!("health:{subject}:{}{removal}", cause.as_str())
            }
        })
    }

    /// True while a run works on the same step of this head. It takes the tip of the base itself, so a base that moves on
    /// meanwhile needs no other run.
    fn is_under_way(&self, facts: &DecisionFacts) -> Result<bool, Need> {
        let mut history = facts.history(&self.ticket)?.iter().rev();
        let Some(earlier) = history.find(|trigger| self.is_requested_by(&trigger.reason)) else {
            return Ok(false);
        };
        let Some(sequence) = *facts.known(&self.ticket, &earlier.key)? else {
            return Ok(false);
        };
        let row = facts.row(&self.ticket)?;
        let run = row.run(&RunId::new(self.ticket.clone(), sequence));
        let is_active = run.is_some_and(|run| !matches!(run.status, RunStatus::Finished { .. }));
        // The planner has not handled the request yet.
        Ok(is_active || row.cursor < sequence)
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
            OwnStep::ResolveConflict => {
                let request = reason.job_request();
                let conflict = request.and_then(|request| request.about.conflict());
                conflict.is_some_and(|earlier| {
                    earlier.pull_request.is_same(&self.ours) && earlier.head == self.head
                })
            }
            OwnStep::RepairQueue(_) | OwnStep::Notify(_) => false,
        }
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
        let mut checks = facts.checks(&self.ours.repository, commit)?.clone();
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
        let key = self.key();
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
        if self.is_under_way(facts)? {
            return Ok(EventVerdict::nothing("a run works on this head already"));
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
mod tests {
    use domain::{
        BaseRequirements, HeadChecks, IssueIdentity, Job, MergeState, PullRequestStatus, QueueRemoval,
        QueueState, RemovalReason, ReviewState, RunSummary, StopReason, TicketRow, Trigger, TriggerChannel,
    };
    use github::{CheckConclusion, PullRequest};

    use super::{
        super::tests::{
            asked_before, build_commit_check, build_commit_id, build_decision_facts, build_pull_record,
            build_pull_reference, build_repository_name, build_ticket_key, decide_event, expect_nothing,
            expect_trigger, facts_with, pull_request,
        },
        *,
    };

    fn build_snapshot(conditions: &[BaseCondition]) -> PullRequestSnapshot {
        PullRequestSnapshot {
            status: PullRequestStatus::Open,
            is_draft: false,
            head: build_commit_id(),
            base: BaseTip {
                branch: "main".to_owned(),
                commit: "b".repeat(40).parse().unwrap(),
                ahead_by: None,
            },
            merge: MergeState::Behind,
            queue: QueueState::default(),
            checks: HeadChecks::default(),
            reviews: ReviewState::default(),
            requirements: BaseRequirements {
                conditions: conditions.to_vec(),
                ..BaseRequirements::default()
            },
            is_unsigned: false,
            is_archived: false,
        }
    }

    fn build_event(step: &HealthStep, conditions: &[BaseCondition]) -> HealthStepEvent {
        let snapshot = build_snapshot(conditions);
        HealthStepEvent::from_step(&build_pull_record(), &snapshot, step, Timestamp::default()).unwrap()
    }

    fn build_facts(now: PullRequest) -> DecisionFacts {
        let mut facts = build_decision_facts();
        facts.put_pull_request(build_repository_name(), 7, now);
        facts
    }

    #[test]
    fn outdated_base_is_updated_by_branch_rules() {
        for (conditions, way) in [
            (&[][..], UpdateWay::Merge),
            (&[BaseCondition::LinearHistory][..], UpdateWay::Rebase),
        ] {
            let event = build_event(&HealthStep::UpdateBase, conditions);
            let mut facts = build_facts(pull_request());
            let follows = expect_trigger(&event, &facts);
            assert_eq!(follows.reason.job(), Some(Job::UpdateBase));
            let outdated = PullRequestEvent::Outdated(OutdatedBase {
                pull_request: build_pull_reference(),
                head: build_commit_id(),
                base_branch: "main".to_owned(),
                way,
            });
            assert_eq!(follows.reason, TriggerReason::from(outdated));
            facts.put_known(build_ticket_key(), follows.key, Some(3));
            assert!(matches!(decide_event(&event, &facts), EventVerdict::Known(3)));
        }
    }

    #[test]
    fn conflict_is_resolved_or_reported() {
        let event = build_event(&HealthStep::ResolveConflict, &[]);
        let mut facts = build_facts(pull_request());
        facts.put_history(build_ticket_key(), vec![asked_before()]);
        let follows = expect_trigger(&event, &facts);
        assert_eq!(follows.reason.job(), Some(Job::ResolveConflict));
        let request = follows.reason.job_request().unwrap();
        let conflict = request.about.conflict().unwrap();
        assert_eq!(
            (&conflict.head, conflict.base_branch.as_str()),
            (&build_commit_id(), "main")
        );

        let mut forgotten = build_facts(pull_request());
        forgotten.put_history(build_ticket_key(), Vec::new());
        let follows = expect_trigger(&event, &forgotten);
        assert!(matches!(
            &follows.reason,
            TriggerReason::PullRequest(PullRequestEvent::Conflicted(conflict)) if conflict.unresolved.is_some()
        ));
        let known = Trigger {
            key: TriggerKey::new("earlier"),
            reason: follows.reason,
            ..asked_before()
        };
        let mut reported = build_facts(pull_request());
        reported.put_history(build_ticket_key(), vec![known]);
        assert_eq!(
            expect_nothing(&event, &reported),
            "the conflict is reported already"
        );
    }

    #[test]
    fn moving_base_waits_for_running_step() {
        for step in [HealthStep::UpdateBase, HealthStep::ResolveConflict] {
            let first = build_event(&step, &[]);
            let mut facts = build_facts(pull_request());
            facts.put_history(build_ticket_key(), vec![asked_before()]);
            let requested = expect_trigger(&first, &facts).into_trigger(TriggerChannel::Webhook);
            let next = HealthStepEvent {
                base: BaseTip {
                    commit: "d".repeat(40).parse().unwrap(),
                    ..first.base.clone()
                },
                ..first
            };
            facts.put_known(build_ticket_key(), requested.key.clone(), Some(3));
            facts.put_history(build_ticket_key(), vec![asked_before(), requested.clone()]);
            let row = |cursor, status| TicketRow {
                cursor,
                runs: vec![RunSummary {
                    id: RunId::new(build_ticket_key(), 3),
                    job: requested.reason.job().unwrap(),
                    status,
                    started_at: Timestamp::default(),
                    finished_at: None,
                    turns: 0,
                }],
                ..TicketRow::default()
            };
            for waiting in [
                TicketRow::default(),
                row(3, RunStatus::Queued),
                row(3, RunStatus::Active),
            ] {
                facts.put_row(build_ticket_key(), waiting);
                assert_eq!(
                    expect_nothing(&next, &facts),
                    "a run works on this head already",
                    "{step:?}"
                );
            }
            let reason = StopReason::Completed;
            facts.put_row(build_ticket_key(), row(3, RunStatus::Finished { reason }));
            let again = expect_trigger(&next, &facts);
            assert_eq!(again.reason.job(), requested.reason.job(), "{step:?}");
            assert_ne!(again.key, requested.key);
        }
    }

    #[test]
    fn queue_failure_is_repaired_on_head() {
        let commit: CommitId = "c".repeat(40).parse().unwrap();
        let event = build_event(
            &HealthStep::RepairQueue {
                commit: commit.clone(),
            },
            &[],
        );
        let mut facts = build_facts(pull_request());
        let checks = vec![
            build_commit_check(1, Some(CheckConclusion::Failure)),
            build_commit_check(2, Some(CheckConclusion::Failure)),
        ];
        facts.put_checks(build_repository_name(), commit.clone(), checks);
        let required = vec!["test 2".to_owned()];
        facts.put_required(build_repository_name(), "main".to_owned(), required);
        let follows = expect_trigger(&event, &facts);
        assert_eq!(follows.reason.job(), Some(Job::FixCi));
        let request = follows.reason.job_request().unwrap();
        let summary = request.about.checks().unwrap();
        let names: Vec<&str> = summary.failed.iter().map(|check| check.name.as_str()).collect();
        assert_eq!(
            (names, &summary.head),
            (vec!["test 2", "test 1"], &build_commit_id())
        );

        let mut green = build_facts(pull_request());
        let checks = vec![build_commit_check(1, Some(CheckConclusion::Success))];
        green.put_checks(build_repository_name(), commit, checks);
        assert!(matches!(
            expect_trigger(&event, &green).reason,
            TriggerReason::Skipped(SkipReason::MergeWaits {
                cause: HealthCause::QueueChecks,
                ..
            })
        ));
    }

    #[test]
    fn notice_about_queue_is_keyed_by_removal() {
        let key = |cause, second: i64| {
            let mut snapshot = build_snapshot(&[]);
            snapshot.queue.removal = Some(QueueRemoval {
                reason: RemovalReason::Person,
                at: Timestamp::from_unix_ms(second * 1_000),
                commit: None,
            });
            let step = HealthStep::Notify(cause);
            let made =
                HealthStepEvent::from_step(&build_pull_record(), &snapshot, &step, Timestamp::default());
            made.unwrap().key()
        };
        assert_ne!(
            key(HealthCause::QueueRemoval, 1),
            key(HealthCause::QueueRemoval, 2)
        );
        assert_eq!(key(HealthCause::Protection, 1), key(HealthCause::Protection, 2));
    }

    #[test]
    fn moved_or_labeled_pull_request_needs_no_step() {
        let event = build_event(&HealthStep::Notify(HealthCause::Protection), &[]);
        let moved = PullRequest {
            head: "d".repeat(40).parse().unwrap(),
            ..pull_request()
        };
        assert_eq!(
            expect_nothing(&event, &build_facts(moved)),
            "not the open head of the pull request"
        );
        let labeled = PullRequest {
            labels: vec!["skip-dispatch".to_owned()],
            ..pull_request()
        };
        assert_eq!(expect_nothing(&event, &build_facts(labeled)), skip::FORBIDDEN);
        let other = "repo:\n  owner: acme\n  name: other\njira:\n  project_key: ENG\n";
        let mut facts = facts_with(other, TriggerChannel::Poll);
        facts.put_pull_request(build_repository_name(), 7, pull_request());
        assert_eq!(expect_nothing(&event, &facts), "no rules cover the ticket");
    }

    #[test]
    fn moved_ticket_is_covered_by_present_key() {
        let event = build_event(&HealthStep::Notify(HealthCause::Protection), &[]);
        let rules = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: OPS\n";
        let mut facts = facts_with(rules, TriggerChannel::Poll);
        facts.put_pull_request(build_repository_name(), 7, pull_request());
        assert_eq!(expect_nothing(&event, &facts), "no rules cover the ticket");
        let present = "jira:OPS-5".parse().unwrap();
        let moved = IssueIdentity::new(1, build_ticket_key(), present, Timestamp::default());
        facts.put_identity(build_ticket_key(), Some(moved));
        expect_trigger(&event, &facts);
    }

    #[test]
    fn steps_of_other_kinds_are_left_to_them() {
        for step in [
            HealthStep::MarkReady { is_unchecked: false },
            HealthStep::RepairChecks,
            HealthStep::Remind,
        ] {
            let made = HealthStepEvent::from_step(
                &build_pull_record(),
                &build_snapshot(&[]),
                &step,
                Timestamp::default(),
            );
            assert_eq!(made, None, "{step:?}");
        }
    }
}

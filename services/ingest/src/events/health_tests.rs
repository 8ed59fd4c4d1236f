//! Tests of the steps that the health of a pull request needs.

use domain::{
    BaseRequirements, HandoverChecks, HeadChecks, IssueIdentity, Job, MergeState, OutboundRefusal,
    PullRequestStatus, QueueRemoval, QueueState, RemovalReason, ReviewState, RunSummary, TicketRow,
    TriggerChannel,
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
fn simultaneous_base_pushes_share_one_resolution() {
    let build = |base: char| HealthStepEvent {
        base: BaseTip {
            commit: base.to_string().repeat(40).parse().unwrap(),
            ..build_snapshot(&[]).base
        },
        ..build_event(&HealthStep::ResolveConflict, &[])
    };
    let mut facts = build_facts(pull_request());
    facts.put_history(build_ticket_key(), vec![asked_before()]);
    // Neither process sees the request of the other one.
    let keys = ['b', 'd'].map(|base| expect_trigger(&build(base), &facts).key);
    assert_eq!(keys[0], keys[1]);
    let first = expect_trigger(&build('b'), &facts).into_trigger(TriggerChannel::Webhook);
    facts.put_known(build_ticket_key(), first.key.clone(), Some(3));
    facts.put_history(build_ticket_key(), vec![asked_before(), first.clone()]);
    let row = TicketRow {
        cursor: 3,
        ..TicketRow::default()
    };
    facts.put_row(build_ticket_key(), row);
    assert!(matches!(
        decide_event(&build('b'), &facts),
        EventVerdict::Known(3)
    ));
    let later = ['d', 'e'].map(|base| expect_trigger(&build(base), &facts).key);
    assert_eq!(later[0], later[1]);
    assert_ne!(later[0], first.key);

    // A former release put the base into the key.
    let former = Trigger {
        key: TriggerKey::new("conflict:former"),
        ..first
    };
    facts.put_known(build_ticket_key(), former.key.clone(), Some(2));
    facts.put_history(build_ticket_key(), vec![asked_before(), former]);
    assert!(matches!(
        decide_event(&build('b'), &facts),
        EventVerdict::Known(2)
    ));
}

#[test]
fn report_and_resolution_have_two_keys() {
    let event = build_event(&HealthStep::ResolveConflict, &[]);
    let mut forgotten = build_facts(pull_request());
    forgotten.put_history(build_ticket_key(), Vec::new());
    let report = expect_trigger(&event, &forgotten);
    let known = Trigger {
        reason: report.reason.clone(),
        key: report.key.clone(),
        ..asked_before()
    };
    let mut facts = build_facts(pull_request());
    facts.put_known(build_ticket_key(), report.key.clone(), Some(2));
    facts.put_history(build_ticket_key(), vec![known, asked_before()]);
    let resolution = expect_trigger(&event, &facts);
    assert_eq!(resolution.reason.job(), Some(Job::ResolveConflict));
    assert_ne!(resolution.key, report.key);
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
fn refused_step_pauses_for_a_day() {
    let first = build_event(&HealthStep::UpdateBase, &[]);
    let mut facts = build_facts(pull_request());
    let requested = expect_trigger(&first, &facts).into_trigger(TriggerChannel::Webhook);
    facts.put_known(build_ticket_key(), requested.key.clone(), Some(3));
    facts.put_history(build_ticket_key(), vec![asked_before(), requested]);
    let next = HealthStepEvent {
        base: BaseTip {
            commit: "d".repeat(40).parse().unwrap(),
            ..first.base.clone()
        },
        ..first
    };
    let day = 24 * 60 * 60 * 1000;
    let linear = OutboundRefusal::LinearHistory {
        repository: build_repository_name(),
        branch: "fix/x".to_owned(),
    };
    let outage = OutboundRefusal::Outside {
        detail: "no".to_owned(),
    };
    for (refusal, age_ms, is_paused) in [
        (&linear, day - 1, true),
        (&linear, day, false),
        (&outage, 0, false),
    ] {
        let run = RunSummary {
            id: RunId::new(build_ticket_key(), 3),
            job: Job::UpdateBase,
            status: RunStatus::Finished {
                reason: StopReason::ReportRefused(refusal.clone()),
            },
            started_at: Timestamp::default(),
            finished_at: Some(Timestamp::from_unix_ms(facts.now.unix_ms() - age_ms)),
            turns: 0,
        };
        let row = TicketRow {
            cursor: 3,
            runs: vec![run],
            ..TicketRow::default()
        };
        facts.put_row(build_ticket_key(), row);
        if is_paused {
            assert_eq!(
                expect_nothing(&next, &facts),
                "the last run on this head was refused"
            );
        } else {
            drop(expect_trigger(&next, &facts));
        }
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
        let made = HealthStepEvent::from_step(&build_pull_record(), &snapshot, &step, Timestamp::default());
        made.unwrap().key(&build_facts(pull_request())).unwrap()
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
        HealthStep::MarkReady(HandoverChecks::Passed),
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

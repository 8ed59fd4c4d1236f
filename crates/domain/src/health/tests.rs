//! All combinations of what a snapshot can contain, and the invariants of their assessments.

use std::{collections::BTreeSet, time::Duration};

use strum::VariantArray as _;

use super::{
    assessment::assess,
    memory::{HealthMemory, StepResult},
    rules::{BaseUpdateRule, HealthLimits, HealthRules},
    snapshot::{
        BaseCondition, BaseRequirements, BaseTip, CheckResult, HeadChecks, MergeState, ObservedCheck,
        ObservedWorkflowRun, PullRequestSnapshot, QueueEntry, QueueRemoval, QueueState, RemovalReason,
        ReviewState, WorkflowRunProgress,
    },
    state::{Assessment, HandoverChecks, HealthActor, HealthCause, HealthState, HealthStep},
};
use crate::{
    identity::{commit::CommitId, time::Timestamp},
    rules::ci::CiRules,
    trigger::pull_request::PullRequestStatus,
};

const START: Timestamp = Timestamp::from_unix_ms(1_000_000_000);

const MERGE_STATES: [MergeState; 7] = [
    MergeState::Unknown,
    MergeState::Clean,
    MergeState::Unstable,
    MergeState::Behind,
    MergeState::Blocked,
    MergeState::Conflicting,
    MergeState::Draft,
];

/// Checks of a head in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableChecks {
    Absent,
    Pending,
    Failed,
    Passed,
}

/// Condition of the base branch in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableCondition {
    None,
    OpenThreads,
    Unsigned,
}

/// Reviews in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableReviews {
    NotRequired,
    Missing,
    ChangesRequested,
    Approved,
}

fn build_commit_id(digit: &str) -> CommitId {
    digit.repeat(40).parse().unwrap()
}

fn build_rules(update_base: BaseUpdateRule, may_lack_checks: bool) -> HealthRules {
    HealthRules {
        update_base,
        may_lack_checks,
        limits: HealthLimits {
            settle: Duration::from_secs(30),
            required: Duration::from_secs(600),
            absent: Duration::from_secs(600),
            pending: Duration::from_secs(7_200),
            mergeability: HealthLimits::MERGEABILITY,
            step: HealthLimits::STEP,
        },
    }
}

/// Snapshot of an open pull request that nothing keeps from being merged.
fn build_snapshot() -> PullRequestSnapshot {
    PullRequestSnapshot {
        status: PullRequestStatus::Open,
        is_draft: false,
        head: build_commit_id("a"),
        base: BaseTip {
            branch: "main".to_owned(),
            commit: build_commit_id("b"),
            ahead_by: None,
        },
        merge: MergeState::Clean,
        queue: QueueState::default(),
        checks: build_checks(TableChecks::Passed),
        reviews: ReviewState::default(),
        requirements: BaseRequirements::default(),
        is_unsigned: false,
        is_archived: false,
    }
}

fn build_checks(checks: TableChecks) -> HeadChecks {
    let result = match checks {
        TableChecks::Absent => return HeadChecks::default(),
        TableChecks::Pending => None,
        TableChecks::Failed => Some(CheckResult::Bad),
        TableChecks::Passed => Some(CheckResult::Good),
    };
    let check = |name: &str, result: Option<CheckResult>| ObservedCheck {
        name: name.to_owned(),
        result,
        ended_at: result.map(|_| START.plus_ms(-60_000)),
    };
    HeadChecks {
        checks: vec![check("lint", Some(CheckResult::Good)), check("test", result)],
        runs: Vec::new(),
    }
}

fn list_queue_states() -> Vec<QueueState> {
    let removal = |reason, commit| QueueState {
        removal: Some(QueueRemoval {
            reason,
            at: START,
            commit,
        }),
        ..QueueState::default()
    };
    vec![
        QueueState::default(),
        QueueState {
            entry: Some(QueueEntry {
                position: 1,
                since: START,
                commit: None,
            }),
            ..QueueState::default()
        },
        removal(RemovalReason::Checks, Some(build_commit_id("c"))),
        removal(RemovalReason::Checks, None),
        removal(RemovalReason::Conflict, None),
        removal(RemovalReason::Person, None),
    ]
}

fn build_reviews(reviews: TableReviews, requirements: &mut BaseRequirements) -> ReviewState {
    requirements.approvals = u32::from(reviews != TableReviews::NotRequired);
    ReviewState {
        approvals: u32::from(reviews == TableReviews::Approved),
        change_requests: match reviews {
            TableReviews::ChangesRequested => vec!["rita".to_owned()],
            TableReviews::NotRequired | TableReviews::Missing | TableReviews::Approved => Vec::new(),
        },
        ..ReviewState::default()
    }
}

/// Calls `visit` with every combination of an open pull request.
fn visit_open_snapshots(mut visit: impl FnMut(&PullRequestSnapshot)) {
    let all_checks = [
        TableChecks::Absent,
        TableChecks::Pending,
        TableChecks::Failed,
        TableChecks::Passed,
    ];
    let all_runs = [
        None,
        Some(WorkflowRunProgress::AwaitsApproval),
        Some(WorkflowRunProgress::UnderWay),
    ];
    let all_required: [&[&str]; 3] = [&[], &["test"], &["deploy"]];
    let all_reviews = [
        TableReviews::NotRequired,
        TableReviews::Missing,
        TableReviews::ChangesRequested,
        TableReviews::Approved,
    ];
    let all_conditions = [
        TableCondition::None,
        TableCondition::OpenThreads,
        TableCondition::Unsigned,
    ];
    for queue in list_queue_states() {
        for merge in MERGE_STATES {
            for is_draft in [false, true] {
                for checks in all_checks {
                    for run in all_runs {
                        for required in all_required {
                            for reviews in all_reviews {
                                for condition in all_conditions {
                                    let mut snapshot = PullRequestSnapshot {
                                        is_draft,
                                        merge,
                                        queue: queue.clone(),
                                        checks: build_checks(checks),
                                        ..build_snapshot()
                                    };
                                    snapshot
                                        .checks
                                        .runs
                                        .extend(run.map(|progress| ObservedWorkflowRun {
                                            name: "CI".to_owned(),
                                            progress,
                                        }));
                                    snapshot.requirements.checks =
                                        required.iter().map(|name| (*name).to_owned()).collect();
                                    snapshot.reviews = build_reviews(reviews, &mut snapshot.requirements);
                                    set_condition(condition, &mut snapshot);
                                    visit(&snapshot);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn set_condition(condition: TableCondition, snapshot: &mut PullRequestSnapshot) {
    match condition {
        TableCondition::None => {}
        TableCondition::OpenThreads => {
            snapshot
                .requirements
                .conditions
                .push(BaseCondition::ResolvedThreads);
            snapshot.reviews.open_threads = Some(1);
        }
        TableCondition::Unsigned => {
            snapshot
                .requirements
                .conditions
                .push(BaseCondition::SignedCommits);
            snapshot.is_unsigned = true;
        }
    }
}

/// True when the checks of a head allow a merge, without the code under test.
fn is_green(snapshot: &PullRequestSnapshot) -> bool {
    let checks = &snapshot.checks;
    let has = |name: &String| checks.checks.iter().any(|check| check.name == *name);
    checks
        .checks
        .iter()
        .all(|check| check.result == Some(CheckResult::Good))
        && checks
            .runs
            .iter()
            .all(|run| run.progress == WorkflowRunProgress::Ended)
        && snapshot.requirements.checks.iter().all(has)
}

/// True when nothing keeps an open pull request from being merged, without the code under test.
fn is_mergeable(snapshot: &PullRequestSnapshot) -> bool {
    let is_current = snapshot.merge == MergeState::Clean || snapshot.merge == MergeState::Unstable;
    is_green(snapshot)
        && is_current
        && !snapshot.is_draft
        && snapshot.queue.removal.is_none()
        && snapshot.reviews.approvals >= snapshot.requirements.approvals
        && snapshot.reviews.change_requests.is_empty()
        && snapshot.requirements.conditions.is_empty()
}

/// Assesses one unchanged snapshot until its memory stays the same, and checks each assessment.
fn follow(snapshot: &PullRequestSnapshot, rules: &HealthRules) -> Vec<Assessment> {
    let (mut memory, mut now) = (HealthMemory::default(), START);
    let mut noticed = BTreeSet::new();
    let mut seen: Vec<Assessment> = Vec::new();
    for _ in 0..20 {
        let assessment = assess(snapshot, rules, &memory, now);
        check_assessment(snapshot, &assessment, &memory, now);
        if let Some(HealthStep::MarkReady(checks)) = assessment.step {
            check_handover(snapshot, checks, &memory, rules, now);
        }
        if let Some(HealthStep::Notify(cause)) = assessment.step {
            assert!(noticed.insert(cause), "two notices about {cause:?}: {snapshot:?}");
        }
        let before = memory.clone();
        memory = memory.after(snapshot, &assessment, StepResult::Requested, now);
        let until = match assessment.state {
            HealthState::Waiting { until, .. } => Some(until),
            HealthState::Merged
            | HealthState::Closed
            | HealthState::Ready
            | HealthState::Queued { .. }
            | HealthState::Blocked { .. } => None,
        };
        seen.push(assessment);
        match until {
            Some(until) => now = until,
            None if memory == before => return seen,
            None => {}
        }
    }
    panic!("no end: {snapshot:?} {seen:?}")
}

fn check_assessment(
    snapshot: &PullRequestSnapshot,
    assessment: &Assessment,
    memory: &HealthMemory,
    now: Timestamp,
) {
    let why = || format!("{snapshot:?} {assessment:?}");
    match &assessment.state {
        HealthState::Ready => {
            assert!(is_mergeable(snapshot), "false green: {}", why());
            assert_eq!(assessment.step, None, "{}", why());
        }
        HealthState::Merged | HealthState::Closed | HealthState::Queued { .. } => {
            assert_eq!(assessment.step, None, "{}", why());
        }
        HealthState::Waiting { until, .. } => {
            assert!(*until > now, "a wait without an end: {}", why());
            assert_eq!(assessment.step, None, "{}", why());
        }
        HealthState::Blocked { cause, .. } => {
            let is_known = memory.noticed.contains(cause);
            assert!(assessment.step.is_some() || is_known, "silent: {}", why());
        }
    }
}

/// Checks a draft that becomes ready: its checks are green, or the rest of them waited for the limit without a failure.
fn check_handover(
    snapshot: &PullRequestSnapshot,
    handover: HandoverChecks,
    memory: &HealthMemory,
    rules: &HealthRules,
    now: Timestamp,
) {
    let checks = &snapshot.checks;
    assert!(snapshot.is_draft, "{snapshot:?}");
    assert_ne!(snapshot.merge, MergeState::Conflicting, "{snapshot:?}");
    let expected = if checks.checks.is_empty() {
        HandoverChecks::Absent
    } else if is_green(snapshot) {
        HandoverChecks::Passed
    } else {
        HandoverChecks::Unfinished
    };
    assert_eq!(handover, expected, "{snapshot:?}");
    if handover != HandoverChecks::Unfinished {
        assert!(
            is_green(snapshot),
            "an unchecked head is handed over: {snapshot:?}"
        );
        return;
    }
    let results: Vec<Option<CheckResult>> = checks.checks.iter().map(|check| check.result).collect();
    assert!(results.contains(&Some(CheckResult::Good)), "{snapshot:?}");
    assert!(!results.contains(&Some(CheckResult::Bad)), "{snapshot:?}");
    let has = |name: &String| checks.checks.iter().any(|check| check.name == *name);
    assert!(snapshot.requirements.checks.iter().all(has), "{snapshot:?}");
    let is_unapproved = |run: &ObservedWorkflowRun| run.progress == WorkflowRunProgress::AwaitsApproval;
    assert!(!checks.runs.iter().any(is_unapproved), "{snapshot:?}");
    let mut seen = memory.seen.iter();
    let since = seen.find(|known| known.cause == HealthCause::PendingChecks);
    let is_due = since.is_some_and(|since| now >= since.at.plus(rules.limits.pending));
    assert!(is_due, "handed over before the limit: {snapshot:?} {memory:?}");
}

#[test]
fn every_combination_keeps_invariants() {
    for update_base in [
        BaseUpdateRule::WhenRequired,
        BaseUpdateRule::Always,
        BaseUpdateRule::Never,
    ] {
        for may_lack_checks in [false, true] {
            let rules = build_rules(update_base, may_lack_checks);
            visit_open_snapshots(|snapshot| {
                let seen = follow(snapshot, &rules);
                let last = seen.last().map(|assessment| &assessment.state);
                let can_be_ready = is_mergeable(snapshot)
                    && snapshot.queue.entry.is_none()
                    && (may_lack_checks || !snapshot.checks.checks.is_empty());
                assert_eq!(
                    matches!(last, Some(HealthState::Ready)),
                    can_be_ready,
                    "{snapshot:?} {seen:?}"
                );
            });
        }
    }
}

#[test]
fn every_cause_is_reached() {
    let mut seen = BTreeSet::new();
    let rules = build_rules(BaseUpdateRule::WhenRequired, false);
    visit_open_snapshots(|snapshot| {
        let assessed = assess(snapshot, &rules, &HealthMemory::default(), START);
        seen.extend(assessed.state.cause());
    });
    let archived = PullRequestSnapshot {
        is_archived: true,
        ..build_snapshot()
    };
    seen.extend(
        assess(&archived, &rules, &HealthMemory::default(), START)
            .state
            .cause(),
    );
    let all: BTreeSet<HealthCause> = HealthCause::VARIANTS.iter().copied().collect();
    assert_eq!(seen, all);
}

/// Draft whose check `test` passed and whose check `WIP` has not ended.
fn build_held_draft() -> PullRequestSnapshot {
    let mut snapshot = PullRequestSnapshot {
        is_draft: true,
        ..build_snapshot()
    };
    snapshot.checks.checks.push(ObservedCheck {
        name: "WIP".to_owned(),
        result: None,
        ended_at: None,
    });
    snapshot
}

#[test]
fn unfinished_check_ends_draft_at_limit() {
    let rules = build_rules(BaseUpdateRule::WhenRequired, false);
    let mut snapshot = build_held_draft();
    let first = assess(&snapshot, &rules, &HealthMemory::default(), START);
    let due = START.plus(rules.limits.pending);
    let waiting = HealthState::Waiting {
        cause: HealthCause::PendingChecks,
        since: START,
        until: due,
    };
    assert_eq!((&first.state, &first.step), (&waiting, &None));
    let memory = HealthMemory::default().after(&snapshot, &first, StepResult::NotTaken, START);
    assert_eq!(assess(&snapshot, &rules, &memory, due.plus_ms(-1)).step, None);
    let handover = assess(&snapshot, &rules, &memory, due);
    let step = HealthStep::MarkReady(HandoverChecks::Unfinished);
    assert_eq!(handover.step, Some(step));
    let memory = memory.after(&snapshot, &handover, StepResult::Requested, due);
    // The handover names the check, so no notice follows at once, whether the draft has ended or not.
    let end = due.plus(HealthLimits::STEP);
    for is_draft in [true, false] {
        snapshot.is_draft = is_draft;
        assert_eq!(assess(&snapshot, &rules, &memory, end.plus_ms(-1)).step, None);
        let late = assess(&snapshot, &rules, &memory, end);
        assert_eq!(late.step, Some(HealthStep::Notify(HealthCause::PendingChecks)));
    }
    // The check ends with the draft.
    snapshot.checks = build_checks(TableChecks::Passed);
    let ready = assess(&snapshot, &rules, &memory, due.plus_ms(1_000));
    assert_eq!((ready.state, ready.step), (HealthState::Ready, None));
}

#[test]
fn progress_of_checks_prolongs_draft() {
    let rules = build_rules(BaseUpdateRule::WhenRequired, false);
    let mut snapshot = build_held_draft();
    let first = assess(&snapshot, &rules, &HealthMemory::default(), START);
    let memory = HealthMemory::default().after(&snapshot, &first, StepResult::NotTaken, START);
    let due = START.plus(rules.limits.pending);
    let last_end = due.plus_ms(-60_000);
    snapshot.checks.checks[0].ended_at = Some(last_end);
    let later = last_end.plus(rules.limits.pending);
    let waiting = HealthState::Waiting {
        cause: HealthCause::PendingChecks,
        since: START,
        until: later,
    };
    assert_eq!(assess(&snapshot, &rules, &memory, due).state, waiting);
    let step = HealthStep::MarkReady(HandoverChecks::Unfinished);
    assert_eq!(assess(&snapshot, &rules, &memory, later).step, Some(step));
    // The clock of a check is wrong.
    snapshot.checks.checks[0].ended_at = Some(later.plus(HealthLimits::STEP));
    let step = HealthStep::MarkReady(HandoverChecks::Unfinished);
    assert_eq!(assess(&snapshot, &rules, &memory, due).step, Some(step));
}

#[test]
fn draft_with_failed_check_is_left_to_people() {
    let rules = build_rules(BaseUpdateRule::WhenRequired, false);
    let due = START.plus(rules.limits.pending);
    let mut failed = build_held_draft();
    failed.checks.checks[1].result = Some(CheckResult::Bad);
    let mut missing = build_held_draft();
    missing.requirements.checks = vec!["deploy".to_owned()];
    let mut alone = build_held_draft();
    alone.checks.checks.retain(|check| check.name == "WIP");
    for snapshot in [failed, missing, alone] {
        let first = assess(&snapshot, &rules, &HealthMemory::default(), START);
        let memory = HealthMemory::default().after(&snapshot, &first, StepResult::NotTaken, START);
        let late = assess(&snapshot, &rules, &memory, due);
        let notice = Some(HealthStep::Notify(HealthCause::PendingChecks));
        assert_eq!(late.step, notice, "{snapshot:?}");
    }
}

#[test]
fn ignored_check_neither_blocks_nor_starts_repair() {
    let rules = build_rules(BaseUpdateRule::WhenRequired, false);
    let ci = CiRules {
        ignore_checks: vec!["WIP".to_owned(), "deploy *".to_owned()],
        ..CiRules::default()
    };
    for result in [None, Some(CheckResult::Bad)] {
        for is_draft in [false, true] {
            let mut snapshot = build_held_draft();
            snapshot.is_draft = is_draft;
            snapshot.checks.checks[2].result = result;
            snapshot.checks.runs.push(ObservedWorkflowRun {
                name: "deploy docs".to_owned(),
                progress: WorkflowRunProgress::AwaitsApproval,
            });
            snapshot.requirements.checks = vec!["WIP".to_owned(), "deploy eu".to_owned()];
            let before = assess(&snapshot, &rules, &HealthMemory::default(), START).state;
            assert_ne!(before, HealthState::Ready, "the test has no check to ignore");
            assert_eq!(snapshot.ignore_checks(&ci), ["WIP", "deploy docs"]);
            let after = assess(&snapshot, &rules, &HealthMemory::default(), START);
            if is_draft {
                let step = HealthStep::MarkReady(HandoverChecks::Passed);
                assert_eq!(after.step, Some(step));
            } else {
                assert_eq!((after.state, after.step), (HealthState::Ready, None));
            }
        }
    }
}

#[test]
fn ended_pull_request_needs_nothing() {
    let rules = build_rules(BaseUpdateRule::Always, true);
    for (status, state) in [
        (PullRequestStatus::Merged, HealthState::Merged),
        (PullRequestStatus::Closed, HealthState::Closed),
    ] {
        visit_open_snapshots(|open| {
            let ended = PullRequestSnapshot {
                status,
                ..open.clone()
            };
            let assessed = assess(&ended, &rules, &HealthMemory::default(), START);
            assert_eq!((assessed.state, assessed.step), (state.clone(), None));
        });
    }
}

#[test]
fn base_update_follows_rule() {
    let behind = PullRequestSnapshot {
        merge: MergeState::Behind,
        ..build_snapshot()
    };
    let mut optional = build_snapshot();
    optional.base.ahead_by = Some(2);
    let mut strict = optional.clone();
    strict.requirements.conditions.push(BaseCondition::CurrentBase);
    let step = |snapshot: &PullRequestSnapshot, rule| {
        assess(
            snapshot,
            &build_rules(rule, false),
            &HealthMemory::default(),
            START,
        )
        .step
    };
    let notice = Some(HealthStep::Notify(HealthCause::OutdatedBase));
    for (snapshot, when_required, always, never) in [
        (
            &behind,
            Some(HealthStep::UpdateBase),
            Some(HealthStep::UpdateBase),
            notice.clone(),
        ),
        (
            &strict,
            Some(HealthStep::UpdateBase),
            Some(HealthStep::UpdateBase),
            notice,
        ),
        (&optional, None, Some(HealthStep::UpdateBase), None),
    ] {
        assert_eq!(step(snapshot, BaseUpdateRule::WhenRequired), when_required);
        assert_eq!(step(snapshot, BaseUpdateRule::Always), always);
        assert_eq!(step(snapshot, BaseUpdateRule::Never), never);
    }
}

#[test]
fn step_is_requested_once_per_base() {
    let rules = build_rules(BaseUpdateRule::WhenRequired, false);
    let mut snapshot = PullRequestSnapshot {
        merge: MergeState::Conflicting,
        ..build_snapshot()
    };
    let first = assess(&snapshot, &rules, &HealthMemory::default(), START);
    assert_eq!(first.step, Some(HealthStep::ResolveConflict));
    let skipped = HealthMemory::default().after(&snapshot, &first, StepResult::NotTaken, START);
    assert_eq!(
        assess(&snapshot, &rules, &skipped, START).step,
        Some(HealthStep::ResolveConflict),
        "a request that was not appended is repeated"
    );
    let memory = HealthMemory::default().after(&snapshot, &first, StepResult::Requested, START);
    assert_eq!(assess(&snapshot, &rules, &memory, START).step, None);
    snapshot.base.commit = build_commit_id("d");
    assert_eq!(
        assess(&snapshot, &rules, &memory, START).step,
        Some(HealthStep::ResolveConflict)
    );
}

#[test]
fn step_left_to_people_is_no_work_of_ours() {
    let rules = build_rules(BaseUpdateRule::WhenRequired, false);
    let mut snapshot = PullRequestSnapshot {
        merge: MergeState::Conflicting,
        ..build_snapshot()
    };
    let first = assess(&snapshot, &rules, &HealthMemory::default(), START);
    let memory = HealthMemory::default().after(&snapshot, &first, StepResult::LeftToPeople, START);
    let blocked = HealthState::Blocked {
        cause: HealthCause::Conflict,
        since: START,
        who: HealthActor::Maintainer,
    };
    // People received a notice with the reason, so the limit of the step brings no second one.
    for now in [START, START.plus(HealthLimits::STEP)] {
        let left = assess(&snapshot, &rules, &memory, now);
        assert_eq!((left.state, left.step), (blocked.clone(), None));
    }
    snapshot.base.commit = build_commit_id("d");
    let again = assess(&snapshot, &rules, &memory, START);
    assert_eq!(
        (again.state, again.step),
        (blocked, Some(HealthStep::ResolveConflict)),
        "another base may be resolved"
    );
}

#[test]
fn new_head_ends_removal_from_queue() {
    let rules = build_rules(BaseUpdateRule::WhenRequired, false);
    let mut snapshot = build_snapshot();
    snapshot.queue.removal = Some(QueueRemoval {
        reason: RemovalReason::Checks,
        at: START,
        commit: Some(build_commit_id("c")),
    });
    let removed = assess(&snapshot, &rules, &HealthMemory::default(), START);
    let commit = build_commit_id("c");
    assert_eq!(removed.step, Some(HealthStep::RepairQueue { commit }));
    let memory = HealthMemory::default().after(&snapshot, &removed, StepResult::Requested, START);
    snapshot.head = build_commit_id("e");
    assert_eq!(
        assess(&snapshot, &rules, &memory, START).state,
        HealthState::Ready
    );
    let removal = snapshot.queue.removal.as_mut().unwrap();
    removal.at = START.plus_ms(5_000);
    let again = assess(&snapshot, &rules, &memory, START);
    assert!(
        matches!(again.step, Some(HealthStep::RepairQueue { .. })),
        "{again:?}"
    );
}

#[test]
fn second_removal_of_head_needs_own_step() {
    let rules = build_rules(BaseUpdateRule::WhenRequired, false);
    for (reason, commit) in [
        (RemovalReason::Checks, Some(build_commit_id("c"))),
        (RemovalReason::Person, None),
    ] {
        let mut snapshot = build_snapshot();
        snapshot.queue.removal = Some(QueueRemoval {
            reason,
            at: START,
            commit,
        });
        let first = assess(&snapshot, &rules, &HealthMemory::default(), START);
        let memory = HealthMemory::default().after(&snapshot, &first, StepResult::Requested, START);
        assert_eq!(assess(&snapshot, &rules, &memory, START).step, None);
        let later = START.plus_ms(5_000);
        snapshot.queue.removal.as_mut().unwrap().at = later;
        let second = assess(&snapshot, &rules, &memory, later);
        assert_eq!(second.step, first.step, "{reason:?}");
    }
}

#[test]
fn tested_commit_of_queue_is_remembered() {
    let rules = build_rules(BaseUpdateRule::WhenRequired, false);
    let mut snapshot = build_snapshot();
    snapshot.queue.entry = Some(QueueEntry {
        position: 1,
        since: START,
        commit: Some(build_commit_id("c")),
    });
    let queued = assess(&snapshot, &rules, &HealthMemory::default(), START);
    let memory = HealthMemory::default().after(&snapshot, &queued, StepResult::NotTaken, START);
    snapshot.queue = QueueState {
        removal: Some(QueueRemoval {
            reason: RemovalReason::Checks,
            at: START.plus_ms(1),
            commit: None,
        }),
        ..QueueState::default()
    };
    let commit = build_commit_id("c");
    assert_eq!(
        assess(&snapshot, &rules, &memory, START.plus_ms(2)).step,
        Some(HealthStep::RepairQueue { commit })
    );
}

#[test]
fn stored_health_is_read_again() {
    let snapshot = PullRequestSnapshot {
        merge: MergeState::Conflicting,
        ..build_snapshot()
    };
    let rules = build_rules(BaseUpdateRule::WhenRequired, false);
    let assessment = assess(&snapshot, &rules, &HealthMemory::default(), START);
    let memory = HealthMemory::default().after(&snapshot, &assessment, StepResult::Requested, START);
    let stored = serde_json::to_string(&(&assessment.state, &memory, &snapshot.base)).unwrap();
    let read: (HealthState, HealthMemory, BaseTip) = serde_json::from_str(&stored).unwrap();
    assert_eq!(read, (assessment.state, memory, snapshot.base));
}

#[test]
fn approvals_are_counted_by_rules() {
    let rules = build_rules(BaseUpdateRule::Never, false);
    let mut snapshot = build_snapshot();
    snapshot.reviews.approvals = 1;
    snapshot.reviews.requested = vec!["rita".to_owned()];
    assert_eq!(snapshot.approval_count(), None);
    snapshot.requirements.approvals = 1;
    let is_blocked = |snapshot: &PullRequestSnapshot| {
        let state = assess(snapshot, &rules, &HealthMemory::default(), START).state;
        state.cause() == Some(HealthCause::Approvals)
    };
    assert!(!is_blocked(&snapshot));
    // The approval is about an earlier head.
    snapshot
        .requirements
        .conditions
        .push(BaseCondition::LastPushApproval);
    assert!(is_blocked(&snapshot));
    let words = snapshot.approval_count().unwrap().words();
    assert_eq!(
        words,
        "1 approval is required, 1 is given; the last push needs an approval; review requested from rita"
    );
    snapshot.reviews.approvals_of_head = 1;
    assert!(!is_blocked(&snapshot));
    // Owners are due only while GitHub blocks the merge: no file of the change may have one.
    snapshot
        .requirements
        .conditions
        .push(BaseCondition::CodeOwnerReview);
    assert!(!is_blocked(&snapshot));
    snapshot.merge = MergeState::Blocked;
    assert!(is_blocked(&snapshot));
    snapshot.requirements.approvals = 0;
    let words = snapshot.approval_count().unwrap().words();
    assert_eq!(
        words,
        "code owners of the changed files have to approve; review requested from rita"
    );
}

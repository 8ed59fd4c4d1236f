//! Tests of the rounds that follow from reports.

use domain::{
    OutboundId, PullRequestEvent, PullRequestHead, PullRequestRef, RunFence, TicketKey,
    report::{FailedCommit, JobProgress, ProgressUpdate},
};

use super::*;

fn build_report(run: u64, position: u64, job: Job) -> OutboundRequest {
    let ticket: TicketKey = "github:acme/shop#7".parse().unwrap();
    let run = RunId::new(ticket.clone(), run);
    OutboundRequest {
        id: OutboundId::from(run.call(position)),
        ticket,
        run: Some(run),
        fence: RunFence::default(),
        at: Timestamp::from_unix_ms(1000),
        progress: Some(JobProgress {
            clone_percent: None,
            job,
            phase: None,
            cost: Some(Dollars::from_micros(position * 10_000)),
        }),
        request: OutboundAction::Progressed(ProgressUpdate {}),
    }
}

fn build_commit_id(digit: &str) -> CommitId {
    digit.repeat(40).parse().unwrap()
}

fn build_pushed_event(digit: &str) -> RoundEvent {
    RoundEvent::Pushed {
        branch: Some("fix/7".to_owned()),
        head: build_commit_id(digit),
        by: None,
    }
}

fn build_checked_event(digit: &str, result: ChecksResult) -> RoundEvent {
    let (head, page) = (build_commit_id(digit), "https://ci.example/7".to_owned());
    RoundEvent::Checked { head, result, page }
}

fn build_opened_receipts() -> EffectReceipts {
    let opened = PullRequestRef {
        repository: "acme/shop".parse().unwrap(),
        number: 8,
        url: "https://github.example/acme/shop/pull/8".to_owned(),
        branch: "fix/7".to_owned(),
    };
    opened.into()
}

#[test]
fn run_round_gets_result_of_its_checks() {
    let mut rounds = WorkRounds::default();
    let nothing = EffectReceipts::default();
    rounds.note(
        &build_report(1, 5, Job::Implement),
        &nothing,
        &build_pushed_event("a"),
    );
    assert_eq!(
        rounds.shown_on(Some(&"acme/shop".parse().unwrap())),
        None,
        "there is no pull request yet"
    );
    rounds.note(
        &build_report(1, 6, Job::Implement),
        &build_opened_receipts(),
        &RoundEvent::Opened,
    );
    rounds.note(
        &build_report(2, 3, Job::MarkReady),
        &nothing,
        &build_checked_event("a", ChecksResult::Failed),
    );
    rounds.note(
        &build_report(3, 5, Job::FixCi),
        &nothing,
        &build_pushed_event("b"),
    );
    rounds.note(
        &build_report(4, 3, Job::MarkReady),
        &nothing,
        &build_checked_event("b", ChecksResult::Passed),
    );
    let shown: Vec<_> = rounds
        .rows
        .iter()
        .map(|round| (round.job, round.commit.clone(), round.checked, round.cost))
        .collect();
    let cents = |cents: u64| Some(Dollars::from_micros(cents * 10_000));
    assert_eq!(
        shown,
        [
            (
                Job::Implement,
                Some(build_commit_id("a")),
                Some(ChecksResult::Failed),
                cents(6)
            ),
            (
                Job::FixCi,
                Some(build_commit_id("b")),
                Some(ChecksResult::Passed),
                cents(5)
            ),
        ]
    );
    let on = rounds.shown_on(Some(&"acme/shop".parse().unwrap())).unwrap();
    assert_eq!(
        (on.head, on.check_run, rounds.number),
        (build_commit_id("b"), None, Some(8))
    );
}

fn build_begun_event(by: &str, is_again: bool) -> RoundEvent {
    RoundEvent::Begun(WorkOrigin {
        by: Some(by.to_owned()),
        is_again,
        ..WorkOrigin::default()
    })
}

#[test]
fn repair_start_records_failed_checks_of_commit() {
    let mut rounds = WorkRounds::default();
    let nothing = EffectReceipts::default();
    rounds.note(
        &build_report(1, 5, Job::Implement),
        &nothing,
        &build_pushed_event("a"),
    );
    let repair = WorkOrigin {
        failed_on: Some(FailedCommit {
            head: build_commit_id("a"),
            page: "https://ci.example/7".to_owned(),
        }),
        ..WorkOrigin::default()
    };
    rounds.note(
        &build_report(2, 3, Job::FixCi),
        &nothing,
        &RoundEvent::Begun(repair),
    );
    let seen: Vec<_> = rounds
        .rows
        .iter()
        .map(|round| (round.checked, round.page.as_str()))
        .collect();
    assert_eq!(
        seen,
        [(Some(ChecksResult::Failed), "https://ci.example/7"), (None, "")]
    );
    assert_eq!(rounds.failures(), 1);
}

const FAILED: RoundEvent = RoundEvent::Failed {
    reason: "model_failed",
};

#[test]
fn consecutive_failures_reset_on_pass_count_once() {
    let (mut rounds, nothing) = (WorkRounds::default(), EffectReceipts::default());
    for position in [4, 4, 9] {
        rounds.note(&build_report(1, position, Job::Implement), &nothing, &FAILED);
    }
    assert_eq!(rounds.failures(), 2);
    rounds.note(
        &build_report(1, 11, Job::Implement),
        &nothing,
        &build_pushed_event("a"),
    );
    let red = build_report(2, 3, Job::FixCi);
    for _ in 0..2 {
        rounds.note(&red, &nothing, &build_checked_event("a", ChecksResult::Failed));
    }
    assert_eq!((rounds.failures(), rounds.count()), (3, 1));
    assert_eq!(rounds.failed.as_ref().map(|(what, _)| what.as_str()), Some("ci"));
    assert_eq!(rounds.rows[0].page, "https://ci.example/7");
    rounds.note(
        &build_report(3, 2, Job::FixCi),
        &nothing,
        &RoundEvent::Begun(WorkOrigin::default()),
    );
    rounds.note(
        &build_report(3, 5, Job::FixCi),
        &nothing,
        &build_pushed_event("b"),
    );
    assert_eq!(
        (rounds.failures(), rounds.count()),
        (3, 2),
        "a repair proves nothing yet"
    );
    rounds.note(
        &build_report(4, 3, Job::MarkReady),
        &nothing,
        &build_checked_event("b", ChecksResult::Passed),
    );
    assert_eq!(rounds.failures(), 0);
}

#[test]
fn repeated_work_adds_row_and_resets_failures() {
    let (mut rounds, nothing) = (WorkRounds::default(), EffectReceipts::default());
    let retried = build_report(1, 8, Job::Implement);
    rounds.note(
        &build_report(1, 2, Job::Implement),
        &nothing,
        &build_begun_event("rita", false),
    );
    rounds.note(&build_report(1, 4, Job::Implement), &nothing, &FAILED);
    for _ in 0..2 {
        rounds.note(&retried, &nothing, &build_begun_event("ada", true));
    }
    assert_eq!((rounds.count(), rounds.failures()), (2, 0));
    rounds.note(&build_report(1, 9, Job::Implement), &nothing, &FAILED);
    assert_eq!(rounds.failures(), 1);
    for _ in 0..2 {
        rounds.note(
            &build_report(5, 2, Job::Implement),
            &nothing,
            &build_begun_event("rita", false),
        );
    }
    rounds.note(
        &build_report(1, 2, Job::Implement),
        &nothing,
        &build_begun_event("rita", false),
    );
    let rows: Vec<_> = rounds
        .rows
        .iter()
        .map(|round| (round.begun.by.as_deref(), round.is_reset))
        .collect();
    assert_eq!(
        rows,
        [(Some("rita"), false), (Some("ada"), true), (Some("rita"), true)]
    );
    assert_eq!((rounds.count(), rounds.failures()), (3, 0));
}

#[test]
fn check_run_belongs_to_last_commit_only() {
    let mut rounds = WorkRounds::default();
    rounds.note(
        &build_report(1, 5, Job::Implement),
        &EffectReceipts::default(),
        &build_pushed_event("a"),
    );
    rounds.note(
        &build_report(1, 6, Job::Implement),
        &build_opened_receipts(),
        &RoundEvent::Opened,
    );
    rounds.check_run = Some((build_commit_id("a"), 77));
    let repository = "acme/shop".parse().unwrap();
    assert_eq!(rounds.shown_on(Some(&repository)).unwrap().check_run, Some(77));
    rounds.note(
        &build_report(2, 5, Job::AddressReview),
        &EffectReceipts::default(),
        &build_pushed_event("b"),
    );
    assert_eq!(rounds.shown_on(Some(&repository)).unwrap().check_run, None);
    assert_eq!(rounds.shown_on(None), None);
}

#[test]
fn dropped_rounds_are_still_counted() {
    let mut rounds = WorkRounds::default();
    for run in 1..=60 {
        rounds.note(
            &build_report(run, 5, Job::FixCi),
            &EffectReceipts::default(),
            &build_pushed_event("a"),
        );
    }
    assert_eq!((rounds.rows.len(), rounds.count()), (MAX_ROUNDS, 60));
}

#[test]
fn push_by_others_is_a_round() {
    let mut rounds = WorkRounds::default();
    rounds.note(
        &build_report(1, 4, Job::Implement),
        &EffectReceipts::default(),
        &build_pushed_event("a"),
    );
    let theirs = OutboundRequest {
        progress: None,
        request: OutboundAction::from(PullRequestEvent::PushedByOthers(PullRequestHead {
            pull_request: PullRequestRef {
                repository: "acme/shop".parse().unwrap(),
                number: 9,
                url: String::new(),
                branch: "fix/7".to_owned(),
            },
            head: build_commit_id("b"),
            by: "rita".to_owned(),
        })),
        ..build_report(2, 3, Job::BackToDraft)
    };
    let head = build_commit_id("b");
    let event = RoundEvent::Pushed {
        branch: None,
        head,
        by: None,
    };
    rounds.note(&theirs, &EffectReceipts::default(), &event);
    rounds.note(&theirs, &EffectReceipts::default(), &event);
    let passed = build_checked_event("b", ChecksResult::Passed);
    rounds.note(
        &build_report(3, 3, Job::MarkReady),
        &EffectReceipts::default(),
        &passed,
    );
    let last = &rounds.rows[1];
    assert_eq!((rounds.count(), last.job), (2, Job::BackToDraft));
    assert_eq!(
        (last.commit.clone(), last.checked),
        (Some(build_commit_id("b")), Some(ChecksResult::Passed))
    );
    let unknown = OutboundRequest {
        progress: None,
        ..build_report(4, 3, Job::Implement)
    };
    rounds.note(&unknown, &EffectReceipts::default(), &build_pushed_event("c"));
    assert_eq!(rounds.count(), 2);
}

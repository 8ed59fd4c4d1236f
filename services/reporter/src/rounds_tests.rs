//! What reports make of the rounds.

use domain::{
    PullRequestRef, ReportId, ReportRequest, RunFence, TicketKey,
    report::{Progress, Progressed},
};

use super::*;

fn report(run: u64, position: u64, job: Job) -> Report {
    let ticket: TicketKey = "github:acme/shop#7".parse().unwrap();
    let run = RunId::new(ticket.clone(), run);
    Report {
        id: ReportId::from(run.call(position)),
        ticket,
        run: Some(run),
        fence: RunFence::default(),
        at: Timestamp::from_unix_ms(1000),
        progress: Some(Progress {
            job,
            phase: None,
            cost: Some(Dollars::from_micros(position * 10_000)),
        }),
        request: ReportRequest::Progressed(Progressed {}),
    }
}

fn commit(digit: &str) -> CommitId {
    digit.repeat(40).parse().unwrap()
}

fn pushed(digit: &str) -> RoundEvent {
    RoundEvent::Pushed {
        branch: Some("fix/7".to_owned()),
        head: commit(digit),
    }
}

fn checked(digit: &str, result: Checked) -> RoundEvent {
    let head = commit(digit);
    RoundEvent::Checked { head, result }
}

fn opened() -> Made {
    Made {
        pull_request: Some(PullRequestRef {
            repository: "acme/shop".parse().unwrap(),
            number: 8,
            url: "https://github.example/acme/shop/pull/8".to_owned(),
            branch: "fix/7".to_owned(),
        }),
        ..Made::default()
    }
}

#[test]
fn a_run_is_a_round_and_its_commit_gets_the_result_of_its_checks() {
    let mut rounds = Rounds::default();
    let nothing = Made::default();
    rounds.note(&report(1, 5, Job::Implement), &nothing, &pushed("a"));
    assert_eq!(
        rounds.shown_on(Some(&"acme/shop".parse().unwrap())),
        None,
        "there is no pull request yet"
    );
    rounds.note(&report(1, 6, Job::Implement), &opened(), &RoundEvent::Opened);
    rounds.note(
        &report(2, 3, Job::MarkReady),
        &nothing,
        &checked("a", Checked::Failed),
    );
    rounds.note(&report(3, 5, Job::FixCi), &nothing, &pushed("b"));
    rounds.note(
        &report(4, 3, Job::MarkReady),
        &nothing,
        &checked("b", Checked::Passed),
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
            (Job::Implement, Some(commit("a")), Some(Checked::Failed), cents(6)),
            (Job::FixCi, Some(commit("b")), Some(Checked::Passed), cents(5)),
        ]
    );
    let on = rounds.shown_on(Some(&"acme/shop".parse().unwrap())).unwrap();
    assert_eq!(
        (on.head, on.check_run, rounds.number),
        (commit("b"), None, Some(8))
    );
}

#[test]
fn a_report_that_is_repeated_counts_a_failure_once_and_a_new_round_begins_without_any() {
    let mut rounds = Rounds::default();
    let failed = RoundEvent::Failed {
        reason: "model_failed",
    };
    for position in [4, 4, 9] {
        rounds.note(&report(1, position, Job::Implement), &Made::default(), &failed);
    }
    assert_eq!(rounds.failures(), 2);
    rounds.note(&report(2, 5, Job::Implement), &Made::default(), &pushed("a"));
    assert_eq!((rounds.failures(), rounds.count()), (0, 2));
}

#[test]
fn the_check_run_of_an_earlier_commit_is_not_that_of_the_last() {
    let mut rounds = Rounds::default();
    rounds.note(&report(1, 5, Job::Implement), &Made::default(), &pushed("a"));
    rounds.note(&report(1, 6, Job::Implement), &opened(), &RoundEvent::Opened);
    rounds.check_run = Some((commit("a"), 77));
    let repository = "acme/shop".parse().unwrap();
    assert_eq!(rounds.shown_on(Some(&repository)).unwrap().check_run, Some(77));
    rounds.note(&report(2, 5, Job::AddressReview), &Made::default(), &pushed("b"));
    assert_eq!(rounds.shown_on(Some(&repository)).unwrap().check_run, None);
    assert_eq!(rounds.shown_on(None), None);
}

#[test]
fn more_rounds_than_are_kept_are_still_counted() {
    let mut rounds = Rounds::default();
    for run in 1..=60 {
        rounds.note(&report(run, 5, Job::FixCi), &Made::default(), &pushed("a"));
    }
    assert_eq!((rounds.rows.len(), rounds.count()), (MAX_ROUNDS, 60));
}

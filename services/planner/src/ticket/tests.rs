//! Tables of triggers and rows.

use domain::{
    Decision, Fact, Job, PullRequestRef, Reason, Receipt, ReportOutcome, ReportRequest, ReportSettled, Row,
    RunFence, RunId, RunStatus, SkipReason, Source, StopReason, Timestamp, Trigger, Verdict,
};

use super::fold::{Step, fold, next_run};
use crate::run::tests::{request, ticket, trigger};

fn fence() -> RunFence {
    RunFence::new(1, 2, 1)
}

fn asked(job: Job) -> Reason {
    Reason::JobRequested(Box::new(request(job)))
}

fn merged() -> Reason {
    Reason::PullRequestMerged {
        pull_request: pull_request(),
        by: "ada".to_owned(),
    }
}

fn pull_request() -> PullRequestRef {
    let repository = "acme/shop".parse().unwrap();
    PullRequestRef {
        repository,
        number: 7,
        url: "u".to_owned(),
        branch: "b".to_owned(),
    }
}

fn run(sequence: u64) -> RunId {
    RunId::new(ticket(), sequence)
}

fn folded(row: Row, reasons: Vec<(u64, Reason)>) -> (Row, Vec<Step>) {
    let triggers: Vec<_> = reasons
        .into_iter()
        .map(|(sequence, reason)| (sequence, trigger(reason)))
        .collect();
    let (row, steps) = fold(row, &ticket(), &triggers, fence(), Timestamp::from_unix_ms(7));
    assert_eq!(
        fold(
            row.clone(),
            &ticket(),
            &triggers,
            fence(),
            Timestamp::from_unix_ms(7)
        ),
        (row.clone(), vec![]),
        "folding again changes nothing"
    );
    (row, steps)
}

#[test]
fn a_requested_job_opens_a_run_named_after_its_trigger() {
    let (row, steps) = folded(Row::default(), vec![(5, asked(Job::Implement))]);
    assert_eq!(row.cursor, 5);
    assert_eq!(next_run(&row), Some(run(5)));
    assert!(matches!(&steps[..], [Step::Open { run: opened, .. }] if *opened == run(5)));
}

#[test]
fn queued_runs_wait_in_order_and_others_start_beside_them() {
    let (mut row, _) = folded(
        Row::default(),
        vec![
            (5, asked(Job::Implement)),
            (6, asked(Job::Implement)),
            (7, merged()),
        ],
    );
    assert_eq!(next_run(&row), Some(run(7)));
    row.finish(&run(7), StopReason::Completed, trigger(merged()).at);
    assert_eq!(next_run(&row), Some(run(5)));
    row.run_mut(&run(5)).unwrap().status = RunStatus::Parked {
        waits_for: "report".to_owned(),
    };
    assert_eq!(next_run(&row), None, "a later run waits for a parked one");
    row.finish(&run(5), StopReason::Completed, trigger(merged()).at);
    assert_eq!(next_run(&row), Some(run(6)));
}

#[test]
fn a_newer_triage_takes_the_place_of_the_running_one() {
    let (row, steps) = folded(
        Row::default(),
        vec![(5, asked(Job::Triage)), (6, asked(Job::Triage))],
    );
    assert_eq!(row.pending.len(), 1);
    assert_eq!(
        row.run(&run(5)).unwrap().status,
        RunStatus::Finished {
            reason: StopReason::Superseded
        }
    );
    assert!(
        steps
            .iter()
            .any(|step| matches!(step, Step::Tell { run: told, .. } if *told == run(5)))
    );
}

#[test]
fn a_settled_report_wakes_its_parked_run_and_records_the_pull_request() {
    let (mut row, _) = folded(Row::default(), vec![(5, asked(Job::Implement))]);
    row.run_mut(&run(5)).unwrap().status = RunStatus::Parked {
        waits_for: "report".to_owned(),
    };
    let outcome = ReportOutcome::Done(Receipt::PullRequestOpened(pull_request()));
    let settled = ReportSettled {
        report: run(5).call(9).into(),
        run: run(5),
        outcome,
    };
    let (row, steps) = folded(row, vec![(6, Reason::ReportSettled(settled))]);
    assert_eq!(row.pull_requests, [pull_request()]);
    assert_eq!(next_run(&row), Some(run(5)));
    assert_eq!(steps.len(), 1);
}

#[test]
fn a_stop_without_a_run_reaches_every_run_but_those_beside() {
    let before = vec![(5, asked(Job::Implement)), (6, merged())];
    let (row, _) = folded(Row::default(), before);
    let (_, steps) = folded(row, vec![(7, Reason::StopRequested { run: None })]);
    assert!(matches!(&steps[..], [Step::Tell { run: told, fact }]
        if *told == run(5) && matches!(&**fact, Fact::StopRequested { by } if by == "ada")));
}

#[test]
fn what_concerns_no_live_run_is_folded_without_a_step() {
    let decision = Decision {
        run: run(3),
        verdict: Verdict::Approve,
        feedback: String::new(),
    };
    let (row, steps) = folded(Row::default(), vec![(5, Reason::Decided(decision))]);
    assert_eq!((row.cursor, steps), (5, vec![]));
}

fn waiting(row: &mut Row, sequence: u64) {
    row.run_mut(&run(sequence)).unwrap().status = RunStatus::Parked {
        waits_for: "retry".to_owned(),
    };
}

#[test]
fn a_retry_and_a_second_move_wake_the_run_that_waits_and_keep_its_history() {
    for reason in [Reason::RetryRequested, asked(Job::Implement)] {
        let (mut row, _) = folded(Row::default(), vec![(5, asked(Job::Implement))]);
        waiting(&mut row, 5);
        let (row, steps) = folded(row, vec![(6, reason)]);
        assert!(matches!(&steps[..], [Step::Tell { run: told, fact }]
            if *told == run(5) && matches!(&**fact, Fact::Retried { by: Some(by) } if by == "ada")));
        assert_eq!(
            (row.pending.len(), row.opened, next_run(&row)),
            (1, 1, Some(run(5)))
        );
    }
}

#[test]
fn a_job_asked_for_over_the_api_gets_the_run_it_was_promised() {
    let (mut row, _) = folded(Row::default(), vec![(5, asked(Job::Implement))]);
    waiting(&mut row, 5);
    let request = Trigger {
        source: Source::Api,
        ..trigger(asked(Job::Implement))
    };
    let now = Timestamp::from_unix_ms(7);
    let (row, steps) = fold(row, &ticket(), &[(6, request)], fence(), now);
    assert!(matches!(&steps[..], [Step::Open { .. }]));
    assert_eq!(next_run(&row), None, "it queues behind the one that waits");
}

#[test]
fn every_kind_of_work_meets_a_running_one_as_the_policy_says() {
    for job in Job::ALL {
        let asked_twice = vec![(5, asked(job)), (6, asked(job))];
        let (row, _) = folded(Row::default(), asked_twice);
        let live: Vec<RunId> = row.pending.iter().map(|pending| pending.run.clone()).collect();
        match job.admission() {
            domain::Admission::Queue => {
                assert_eq!(
                    (live, next_run(&row)),
                    (vec![run(5), run(6)], Some(run(5))),
                    "{job}"
                );
            }
            domain::Admission::CancelRunning => assert_eq!(live, [run(6)], "{job}"),
            domain::Admission::Beside => {
                let mut row = row;
                row.run_mut(&run(5)).unwrap().status = RunStatus::Parked {
                    waits_for: "report".to_owned(),
                };
                assert_eq!(next_run(&row), Some(run(6)), "{job}: it does not wait");
            }
        }
    }
}

#[test]
fn a_skipped_job_becomes_a_notice() {
    let skipped = SkipReason::Label {
        label: "skip-dispatch".to_owned(),
    };
    let (row, steps) = folded(Row::default(), vec![(5, Reason::Skipped(skipped.clone()))]);
    assert!(row.runs.is_empty());
    let [Step::Notice(report)] = &steps[..] else {
        panic!("{steps:?}")
    };
    assert_eq!(report.id.as_str(), "notice:jira:ENG-12@5");
    assert_eq!(report.request, ReportRequest::Skipped(skipped));
}

//! Tables of triggers and the resulting rows.

use std::collections::BTreeSet;

use domain::{
    ChecksConclusion, ChecksSummary, DecisionVerdict, Fact, GateDecision, Job, Lane, OutboundAction,
    OutboundOutcome, OutboundReceipt, OutboundSettled, PendingRun, PullRequestEnd, PullRequestEvent,
    PullRequestHead, PullRequestRef, RunFence, RunId, RunStatus, SkipReason, StopReason, TicketComment,
    TicketDeparture, TicketNews, TicketRow, Timestamp, Trigger, TriggerChannel, TriggerReason, WaitCondition,
};
use proptest::prelude::*;

use super::fold::{FoldStep, fold_triggers};
use super::lanes::next_runs;
use crate::run::tests::{
    build_commit_id, build_job_request, build_review_subject, build_ticket_key, build_trigger,
};

fn build_fence() -> RunFence {
    RunFence::new(1, 2, 1)
}

fn build_request_reason(job: Job) -> TriggerReason {
    TriggerReason::JobRequested(Box::new(build_job_request(job)))
}

fn build_merge_reason() -> TriggerReason {
    TriggerReason::from(PullRequestEvent::Merged(PullRequestEnd {
        pull_request: pull_request(),
        by: "ada".to_owned(),
        moved_to: None,
    }))
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

fn build_run_id(sequence: u64) -> RunId {
    RunId::new(build_ticket_key(), sequence)
}

fn fold_reasons(row: TicketRow, reasons: Vec<(u64, TriggerReason)>) -> (TicketRow, Vec<FoldStep>) {
    let triggers: Vec<_> = reasons
        .into_iter()
        .map(|(sequence, reason)| (sequence, build_trigger(reason)))
        .collect();
    let (row, steps) = fold_triggers(
        row,
        &build_ticket_key(),
        &triggers,
        build_fence(),
        Timestamp::from_unix_ms(7),
    );
    assert_eq!(
        fold_triggers(
            row.clone(),
            &build_ticket_key(),
            &triggers,
            build_fence(),
            Timestamp::from_unix_ms(7)
        ),
        (row.clone(), vec![]),
        "folding again changes nothing"
    );
    (row, steps)
}

#[test]
fn requested_job_opens_run_named_by_trigger() {
    let (row, steps) = fold_reasons(
        TicketRow::default(),
        vec![(5, build_request_reason(Job::Implement))],
    );
    assert_eq!(row.cursor, 5);
    assert_eq!(next_runs(&row), [build_run_id(5)]);
    assert!(matches!(&steps[..], [FoldStep::Open { run: opened, .. }] if *opened == build_run_id(5)));
}

fn mark_run_parked(row: &mut TicketRow, sequence: u64, waits_for: WaitCondition) {
    row.run_mut(&build_run_id(sequence)).unwrap().status = RunStatus::Parked { waits_for };
}

#[test]
fn changes_of_one_repository_take_turns() {
    let asked = vec![
        (5, build_request_reason(Job::Implement)),
        (6, build_request_reason(Job::Implement)),
        (7, build_merge_reason()),
    ];
    let (mut row, _) = fold_reasons(TicketRow::default(), asked);
    assert_eq!(next_runs(&row), [build_run_id(5), build_run_id(7)]);
    row.finish(
        &build_run_id(7),
        StopReason::Completed,
        build_trigger(build_merge_reason()).at,
    );
    assert_eq!(next_runs(&row), [build_run_id(5)]);
    mark_run_parked(&mut row, 5, WaitCondition::Report);
    assert_eq!(
        next_runs(&row),
        [],
        "the second may come to work on the first one's branch"
    );
    row.finish(
        &build_run_id(5),
        StopReason::Completed,
        build_trigger(build_merge_reason()).at,
    );
    assert_eq!(next_runs(&row), [build_run_id(6)]);
}

#[test]
fn changes_of_two_repositories_run_parallel() {
    let mut other = build_job_request(Job::Implement);
    other.repository = "acme/site".parse().unwrap();
    let other = TriggerReason::JobRequested(Box::new(other));
    let (row, _) = fold_reasons(
        TicketRow::default(),
        vec![(5, build_request_reason(Job::Implement)), (6, other)],
    );
    let mut next = next_runs(&row);
    next.sort();
    assert_eq!(next, [build_run_id(5), build_run_id(6)]);
}

#[test]
fn parked_change_keeps_only_its_branch() {
    let on = |branch: &str| {
        let pull_request = PullRequestRef {
            branch: branch.to_owned(),
            ..pull_request()
        };
        TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(ChecksSummary::new(
            pull_request,
            build_commit_id('1'),
            ChecksConclusion::Failure,
        )))
    };
    let red = vec![(6, on("a")), (7, on("b")), (8, on("b"))];
    let (mut row, _) = fold_reasons(
        TicketRow::default(),
        vec![(5, build_request_reason(Job::Implement))],
    );
    row.set_branch(&build_run_id(5), "a");
    mark_run_parked(&mut row, 5, WaitCondition::Decision);
    (row, _) = fold_reasons(row, red);
    assert_eq!(
        next_runs(&row),
        [build_run_id(7)],
        "the branch of the first is its own"
    );
    row.run_mut(&build_run_id(7)).unwrap().status = RunStatus::Active;
    let answer = OutboundSettled {
        report: build_run_id(5).call(9).into(),
        run: build_run_id(5),
        outcome: OutboundOutcome::Done(OutboundReceipt::Told),
    };
    (row, _) = fold_reasons(row, vec![(9, TriggerReason::ReportSettled(answer))]);
    assert_eq!(
        next_runs(&row),
        [build_run_id(7)],
        "a run that has begun is not interrupted"
    );
    mark_run_parked(&mut row, 7, WaitCondition::Report);
    assert_eq!(
        next_runs(&row),
        [build_run_id(5)],
        "the oldest that can go on is next"
    );
}

fn build_comment_reason(on: Option<PullRequestRef>) -> TriggerReason {
    comment_by(true, on)
}

fn comment_by(may_instruct: bool, on: Option<PullRequestRef>) -> TriggerReason {
    TriggerReason::NewsArrived(TicketNews::Comment {
        comment: TicketComment {
            author: "ada".to_owned(),
            at: Timestamp::from_unix_ms(9),
            text: "Mind the tax.".to_owned(),
            may_instruct,
            is_new: false,
        },
        pull_request: on,
        attachments: Vec::new(),
    })
}

#[test]
fn news_reach_concerned_runs_without_waking() {
    let mut row = fold_reasons(
        TicketRow::default(),
        vec![
            (5, build_request_reason(Job::Implement)),
            (6, build_merge_reason()),
        ],
    )
    .0;
    mark_run_parked(&mut row, 5, WaitCondition::Decision);
    for on in [None, Some(pull_request())] {
        let (folded, steps) = fold_reasons(row.clone(), vec![(7, build_comment_reason(on))]);
        assert!(matches!(&steps[..], [FoldStep::Pass { run, fact }]
            if *run == build_run_id(5) && matches!(&**fact, Fact::NewsArrived { sequence: 7, .. })));
        assert_eq!(
            folded.run(&build_run_id(5)).unwrap().status,
            row.run(&build_run_id(5)).unwrap().status
        );
    }
    let elsewhere = PullRequestRef {
        repository: "acme/site".parse().unwrap(),
        ..pull_request()
    };
    assert_eq!(
        fold_reasons(row, vec![(7, build_comment_reason(Some(elsewhere)))]).1,
        []
    );
    assert_eq!(
        fold_reasons(TicketRow::default(), vec![(7, build_comment_reason(None))]).1,
        [],
        "without a live run nothing follows"
    );
}

#[test]
fn comment_wakes_run_awaiting_answer() {
    let mut row = fold_reasons(
        TicketRow::default(),
        vec![(5, build_request_reason(Job::Implement))],
    )
    .0;
    mark_run_parked(&mut row, 5, WaitCondition::Answer);
    let (folded, steps) = fold_reasons(row, vec![(7, build_comment_reason(None))]);
    assert_eq!(folded.run(&build_run_id(5)).unwrap().status, RunStatus::Queued);
    assert!(
        matches!(&steps[..], [FoldStep::Pass { fact, .. }] if matches!(&**fact, Fact::NewsArrived { .. }))
    );
}

#[test]
fn comment_of_stranger_wakes_no_waiting_run() {
    let mut row = fold_reasons(
        TicketRow::default(),
        vec![(5, build_request_reason(Job::Implement))],
    )
    .0;
    mark_run_parked(&mut row, 5, WaitCondition::Answer);
    let (folded, steps) = fold_reasons(row.clone(), vec![(7, comment_by(false, None))]);
    assert_eq!(
        folded.run(&build_run_id(5)).unwrap().status,
        row.run(&build_run_id(5)).unwrap().status
    );
    assert!(
        matches!(&steps[..], [FoldStep::Pass { fact, .. }] if matches!(&**fact, Fact::NewsArrived { .. })),
        "it is read once the run goes on: {steps:?}"
    );
}

#[test]
fn newer_triage_supersedes_running_one() {
    let (row, steps) = fold_reasons(
        TicketRow::default(),
        vec![
            (5, build_request_reason(Job::Triage)),
            (6, build_request_reason(Job::Triage)),
        ],
    );
    assert_eq!(row.pending.len(), 1);
    assert_eq!(
        row.run(&build_run_id(5)).unwrap().status,
        RunStatus::Finished {
            reason: StopReason::Superseded
        }
    );
    assert!(
        steps
            .iter()
            .any(|step| matches!(step, FoldStep::Pass { run, .. } if *run == build_run_id(5)))
    );
}

fn pushed_by_grace() -> TriggerReason {
    TriggerReason::from(PullRequestEvent::PushedByOthers(PullRequestHead {
        pull_request: pull_request(),
        head: build_commit_id('c'),
        by: "grace".to_owned(),
    }))
}

#[test]
fn push_reaches_only_work_on_branch() {
    let on = |branch: &str| {
        let mut request = build_job_request(Job::AddressReview);
        request.about = build_review_subject();
        if let domain::JobSubject::Review(round) = &mut request.about {
            round.pull_request.branch = branch.to_owned();
        }
        TriggerReason::JobRequested(Box::new(request))
    };
    let mut row = fold_reasons(
        TicketRow::default(),
        vec![
            (5, on("b")),
            (6, on("other")),
            (7, build_request_reason(Job::Answer)),
        ],
    )
    .0;
    mark_run_parked(&mut row, 5, WaitCondition::Answer);
    let (moved, steps) = fold_reasons(row, vec![(8, pushed_by_grace())]);
    let reached: Vec<&RunId> = steps
        .iter()
        .filter_map(|step| match step {
            FoldStep::Pass { run, fact } if matches!(&**fact, Fact::HeadMoved { head, .. } if *head == build_commit_id('c')) => {
                Some(run)
            }
            _ => None,
        })
        .collect();
    assert_eq!(reached, [&build_run_id(5)]);
    assert_eq!(moved.run(&build_run_id(5)).unwrap().status, RunStatus::Queued);
    assert_eq!(moved.run(&build_run_id(8)).unwrap().job, Job::BackToDraft);
}

#[test]
fn withdrawn_review_ends_alone() {
    let row = fold_reasons(
        TicketRow::default(),
        vec![
            (5, build_request_reason(Job::Review)),
            (6, build_request_reason(Job::Implement)),
            (7, build_request_reason(Job::Triage)),
        ],
    );
    let why = domain::WithdrawalReason::Merged;
    let (row, steps) = fold_reasons(row.0, vec![(8, TriggerReason::ReviewWithdrawn { why })]);
    let reason = StopReason::Withdrawn { why };
    assert_eq!(
        row.run(&build_run_id(5)).unwrap().status,
        RunStatus::Finished {
            reason: reason.clone()
        }
    );
    assert!(matches!(&steps[..], [FoldStep::Pass { run, fact }]
        if *run == build_run_id(5) && **fact == Fact::RunFinished { reason }));
    assert_eq!(row.pending.len(), 2);
}

#[test]
fn departed_ticket_ends_work_once() {
    let (row, _) = fold_reasons(
        TicketRow::default(),
        vec![
            (5, build_request_reason(Job::Implement)),
            (6, build_request_reason(Job::Triage)),
            (7, build_merge_reason()),
        ],
    );
    let departure = TicketDeparture::Transferred {
        to: Some("acme/other#220".to_owned()),
    };
    let (row, steps) = fold_reasons(row, vec![(8, TriggerReason::TicketLeft(departure.clone()))]);
    let reason = StopReason::TicketLeft(departure.clone());
    for sequence in [5, 6] {
        let run = row.run(&build_run_id(sequence)).unwrap();
        assert_eq!(
            run.status,
            RunStatus::Finished {
                reason: reason.clone()
            }
        );
    }
    let live: Vec<u64> = row.pending.iter().map(|pending| pending.sequence).collect();
    assert_eq!(live, [7], "maintenance after a merge completes");
    let [
        FoldStep::Pass { fact, .. },
        FoldStep::Pass { .. },
        FoldStep::Notice(notice),
    ] = &steps[..]
    else {
        panic!("{steps:?}")
    };
    assert_eq!(**fact, Fact::RunFinished { reason });
    assert_eq!(notice.request, OutboundAction::TicketLeft(departure));
    let (_, again) = fold_reasons(
        row,
        vec![(9, TriggerReason::TicketLeft(TicketDeparture::Deleted))],
    );
    assert!(again.is_empty(), "{again:?}");
}

#[test]
fn settled_report_wakes_run_and_records_pull() {
    let (mut row, _) = fold_reasons(
        TicketRow::default(),
        vec![(5, build_request_reason(Job::Implement))],
    );
    mark_run_parked(&mut row, 5, WaitCondition::Report);
    let outcome = OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(pull_request()));
    let settled = OutboundSettled {
        report: build_run_id(5).call(9).into(),
        run: build_run_id(5),
        outcome,
    };
    let (row, steps) = fold_reasons(row, vec![(6, TriggerReason::ReportSettled(settled))]);
    assert_eq!(row.pull_requests, [pull_request()]);
    assert_eq!(next_runs(&row), [build_run_id(5)]);
    assert_eq!(steps.len(), 1);
}

#[test]
fn stop_reaches_all_runs_except_maintenance() {
    let before = vec![
        (5, build_request_reason(Job::Implement)),
        (6, build_merge_reason()),
    ];
    let (row, _) = fold_reasons(TicketRow::default(), before);
    let (_, steps) = fold_reasons(row, vec![(7, TriggerReason::StopRequested { run: None })]);
    assert!(matches!(&steps[..], [FoldStep::Pass { run, fact }]
        if *run == build_run_id(5) && matches!(&**fact, Fact::StopRequested { by } if by == "ada")));
}

#[test]
fn irrelevant_trigger_folds_without_step() {
    let decision = GateDecision {
        run: build_run_id(3),
        head: "a".repeat(40).parse().unwrap(),
        verdict: DecisionVerdict::Approve,
        feedback: String::new(),
    };
    let (row, steps) = fold_reasons(TicketRow::default(), vec![(5, TriggerReason::Decided(decision))]);
    assert_eq!((row.cursor, steps), (5, vec![]));
}

#[test]
fn retry_and_reassignment_wake_waiting_run() {
    for reason in [
        TriggerReason::RetryRequested,
        build_request_reason(Job::Implement),
    ] {
        let (mut row, _) = fold_reasons(
            TicketRow::default(),
            vec![(5, build_request_reason(Job::Implement))],
        );
        mark_run_parked(&mut row, 5, WaitCondition::Retry);
        let (row, steps) = fold_reasons(row, vec![(6, reason)]);
        assert!(matches!(&steps[..], [FoldStep::Pass { run, fact }]
            if *run == build_run_id(5) && matches!(&**fact, Fact::Retried { by: Some(by), trigger: Some(6) } if by == "ada")));
        assert_eq!(
            (row.pending.len(), row.opened, next_runs(&row)),
            (1, 1, vec![build_run_id(5)])
        );
    }
}

#[test]
fn retry_with_settled_notice_is_kept() {
    let (mut row, _) = fold_reasons(
        TicketRow::default(),
        vec![(5, build_request_reason(Job::Implement))],
    );
    mark_run_parked(&mut row, 5, WaitCondition::Retry);
    let settled = TriggerReason::ReportSettled(domain::OutboundSettled {
        report: build_run_id(5).call(9).into(),
        run: build_run_id(5),
        outcome: domain::OutboundOutcome::Done(domain::OutboundReceipt::Told),
    });
    let (_, steps) = fold_reasons(row, vec![(6, settled), (7, TriggerReason::RetryRequested)]);
    let last = steps.last();
    assert!(matches!(last, Some(FoldStep::Pass { fact, .. }) if matches!(**fact, Fact::Retried { .. })));
}

#[test]
fn api_job_gets_promised_run() {
    let (mut row, _) = fold_reasons(
        TicketRow::default(),
        vec![(5, build_request_reason(Job::Implement))],
    );
    mark_run_parked(&mut row, 5, WaitCondition::Retry);
    let request = Trigger {
        source: TriggerChannel::Api,
        ..build_trigger(build_request_reason(Job::Implement))
    };
    let now = Timestamp::from_unix_ms(7);
    let (row, steps) = fold_triggers(row, &build_ticket_key(), &[(6, request)], build_fence(), now);
    assert!(matches!(&steps[..], [FoldStep::Open { .. }]));
    assert_eq!(next_runs(&row), [], "it queues behind the one that waits");
}

#[test]
fn jobs_meet_running_jobs_by_lane() {
    for job in Job::ALL {
        let (mut row, _) = fold_reasons(
            TicketRow::default(),
            vec![(5, build_request_reason(job)), (6, build_request_reason(job))],
        );
        let live: Vec<RunId> = row.pending.iter().map(|pending| pending.run.clone()).collect();
        let lane = job.lane(&pull_request().repository);
        if lane.replaces() {
            assert_eq!(
                (live, next_runs(&row)),
                (vec![build_run_id(6)], vec![build_run_id(6)]),
                "{job}"
            );
            continue;
        }
        assert_eq!(
            (live, next_runs(&row)),
            (vec![build_run_id(5), build_run_id(6)], vec![build_run_id(5)]),
            "{job}"
        );
        mark_run_parked(&mut row, 5, WaitCondition::Report);
        let second = if matches!(lane, Lane::Change { .. }) {
            vec![]
        } else {
            vec![build_run_id(6)]
        };
        assert_eq!(next_runs(&row), second, "{job}: after the first has parked");
    }
}

#[derive(Clone, Debug)]
enum Event {
    /// Requests a run of this lane and branch.
    Ask(u8, Option<u8>),
    /// Parks a working run.
    Park(u8),
    /// Delivers what a parked run waits for.
    Wake(u8),
    /// Finishes a working run.
    End(u8),
}

fn any_events() -> impl Strategy<Value = Vec<Event>> {
    let ask = (0..4_u8, proptest::option::of(0..3_u8)).prop_map(|(lane, branch)| Event::Ask(lane, branch));
    let event = prop_oneof![
        3 => ask,
        2 => any::<u8>().prop_map(Event::Park),
        2 => any::<u8>().prop_map(Event::Wake),
        2 => any::<u8>().prop_map(Event::End),
    ];
    prop::collection::vec(event, 0..60)
}

fn choose_lane(number: u8) -> Lane {
    match number {
        0 => Lane::Talk,
        1 => Lane::Upkeep,
        _ => Lane::Change {
            repository: format!("acme/r{number}").parse().unwrap(),
        },
    }
}

/// Row with the runs that have begun.
#[derive(Default)]
struct Rounds {
    row: TicketRow,
    begun: BTreeSet<RunId>,
}

impl Rounds {
    fn play(&mut self, event: &Event, sequence: u64) {
        let pick = |is: &dyn Fn(&RunStatus) -> bool, at: u8| {
            let live: Vec<RunId> = self
                .row
                .runs
                .iter()
                .filter(|run| is(&run.status))
                .map(|run| run.id.clone())
                .collect();
            live.get(usize::from(at) % live.len().max(1)).cloned()
        };
        let active = |status: &RunStatus| *status == RunStatus::Active;
        let (run, status) = match event {
            Event::Ask(number, branch) => {
                let pending = PendingRun {
                    branch: branch.map(|branch| branch.to_string()),
                    ..PendingRun::new(build_run_id(sequence), Job::Implement, choose_lane(*number))
                };
                self.row.open(pending, Timestamp::default());
                (None, None)
            }
            Event::Park(at) => {
                let waits_for = WaitCondition::Report;
                (pick(&active, *at), Some(RunStatus::Parked { waits_for }))
            }
            Event::Wake(at) => {
                let is_parked = |status: &RunStatus| matches!(status, RunStatus::Parked { .. });
                (pick(&is_parked, *at), Some(RunStatus::Queued))
            }
            Event::End(at) => (pick(&active, *at), None),
        };
        match (run, status) {
            (Some(run), Some(status)) => self.row.run_mut(&run).unwrap().status = status,
            (Some(run), None) => self.row.finish(&run, StopReason::Completed, Timestamp::default()),
            (None, _) => {}
        }
        for run in next_runs(&self.row) {
            self.row.run_mut(&run).unwrap().status = RunStatus::Active;
            self.begun.insert(run);
        }
    }

    fn status(&self, pending: &PendingRun) -> &RunStatus {
        &self.row.run(&pending.run).unwrap().status
    }
}

proptest! {
    #[test]
    fn lanes_and_branches_serve_every_run(events in any_events()) {
        let mut rounds = Rounds::default();
        for (event, sequence) in events.iter().zip(1..) {
            rounds.play(event, sequence);
            let live = &rounds.row.pending;
            for (place, pending) in live.iter().enumerate() {
                for other in &live[..place] {
                    let is_same = pending.lane == other.lane;
                    let work = [pending, other].map(|run| *rounds.status(run) == RunStatus::Active);
                    prop_assert!(!is_same || work != [true, true], "two at work in one lane");
                    let owners = [pending, other].iter().all(|run| rounds.begun.contains(&run.run));
                    let known = pending.branch.as_ref().zip(other.branch.as_ref());
                    let shared = is_same
                        && matches!(pending.lane, Lane::Change { .. })
                        && known.is_none_or(|(one, other)| one == other);
                    prop_assert!(!(owners && shared), "two runs own one branch");
                }
            }
        }
        // From here on every wait is fulfilled, and every working run ends.
        for round in 0..1000 {
            if rounds.row.pending.is_empty() {
                break;
            }
            rounds.play(&Event::Wake(0), 1000 + round);
            rounds.play(&Event::End(0), 1000 + round);
        }
        prop_assert!(rounds.row.pending.is_empty(), "a run never has its turn: {:?}", rounds.row.pending);
    }
}

#[test]
fn orders_get_reaction_and_cost_reply() {
    let to = domain::ReactionSubject::Comment {
        repository: "acme/shop".parse().unwrap(),
        id: 77,
    };
    let cost = domain::TicketCost {
        tokens: 5,
        ..domain::TicketCost::default()
    };
    let asked = Trigger {
        seen: Some(to.clone()),
        ..build_trigger(TriggerReason::CostAsked {
            on: None,
            cost: cost.clone(),
        })
    };
    let at = Timestamp::from_unix_ms(7);
    let (_, steps) = fold_triggers(
        TicketRow::default(),
        &build_ticket_key(),
        &[(5, asked)],
        build_fence(),
        at,
    );
    let [FoldStep::Notice(seen), FoldStep::Notice(reply)] = &steps[..] else {
        panic!("{steps:?}")
    };
    assert_eq!(seen.id.as_str(), "seen:jira:ENG-12@5");
    let reaction = domain::ReactionKind::Eyes;
    assert_eq!(
        seen.request,
        domain::report::ReactionRequest { to, reaction }.into()
    );
    assert_eq!(reply.id.as_str(), "notice:jira:ENG-12@5");
    assert_eq!(reply.request, domain::report::CostReply { on: None, cost }.into());
}

#[test]
fn help_is_replied_where_it_was_asked() {
    let (_, steps) = fold_reasons(
        TicketRow::default(),
        vec![(
            5,
            TriggerReason::HelpAsked {
                on: None,
                meant: None,
            },
        )],
    );
    let [FoldStep::Notice(reply)] = &steps[..] else {
        panic!("{steps:?}")
    };
    assert_eq!(reply.id.as_str(), "notice:jira:ENG-12@5");
    let expected = |is_review| {
        OutboundAction::from(domain::report::HelpReply {
            on: None,
            is_review,
            meant: None,
        })
    };
    assert_eq!(reply.request, expected(false));

    // A pull request of another author, and then work that a person asked for there.
    for (jobs, is_review) in [
        (vec![Job::Review], true),
        (vec![Job::Review, Job::Implement], false),
        (vec![Job::Implement], false),
    ] {
        let asked = (5..).zip(jobs.into_iter().map(build_request_reason));
        let help = (
            9,
            TriggerReason::HelpAsked {
                on: None,
                meant: None,
            },
        );
        let (_, steps) = fold_reasons(TicketRow::default(), asked.chain([help]).collect());
        let Some(FoldStep::Notice(reply)) = steps.last() else {
            panic!("{steps:?}")
        };
        assert_eq!(reply.request, expected(is_review));
    }
}

#[test]
fn a_skipped_job_becomes_a_notice() {
    let skipped = SkipReason::Label {
        label: "skip-dispatch".to_owned(),
    };
    let (row, steps) = fold_reasons(
        TicketRow::default(),
        vec![(5, TriggerReason::Skipped(skipped.clone()))],
    );
    assert!(row.runs.is_empty());
    let [FoldStep::Notice(report)] = &steps[..] else {
        panic!("{steps:?}")
    };
    assert_eq!(report.id.as_str(), "notice:jira:ENG-12@5");
    assert_eq!(report.request, OutboundAction::Skipped(skipped));
}

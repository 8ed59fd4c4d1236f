//! Folds a ticket's triggers into its row.

use domain::{
    Fact, Job, Lane, OutboundAction, OutboundId, OutboundOutcome, OutboundReceipt, OutboundRequest,
    PendingRun, PullRequestEvent, ReactionKind, RunFence, RunId, RunStatus, RunSummary, StopReason,
    TicketDeparture, TicketKey, TicketNews, TicketRow, Timestamp, Trigger, TriggerChannel, TriggerReason,
    WaitCondition,
    report::{CostReply, HelpReply, ReactionRequest},
};

/// Consequence of a trigger beyond the row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FoldStep {
    /// Starts the run with this trigger.
    Open { run: RunId, trigger: Box<Trigger> },
    /// Passes a fact to a live run.
    Pass { run: RunId, fact: Box<Fact> },
    /// Sends a notice to the ticket without a run.
    Notice(Box<OutboundRequest>),
}

/// Returns the row after the triggers, and their consequences in order. A repeated fold after a crash
/// returns the same.
pub(super) fn fold_triggers(
    mut row: TicketRow,
    ticket: &TicketKey,
    triggers: &[(u64, Trigger)],
    fence: RunFence,
    now: Timestamp,
) -> (TicketRow, Vec<FoldStep>) {
    let mut steps = Vec::new();
    for (sequence, trigger) in triggers {
        if *sequence <= row.cursor {
            continue;
        }
        // The trigger's sequence names the run, so a repeated fold names the same run.
        match pending_run(RunId::new(ticket.clone(), *sequence), &trigger.reason) {
            Some(asked) if should_resume(&row, &asked, trigger) => {
                retry_waiting_runs(&mut row, *sequence, trigger, &mut steps)
            }
            Some(asked) => {
                restart_work(&mut row, *sequence, &trigger.reason, &mut steps);
                open_pending_run(&mut row, asked, trigger, now, &mut steps);
            }
            None => apply_reason(&mut row, *sequence, trigger, fence, &mut steps),
        }
        row.cursor = *sequence;
    }
    (row, steps)
}

/// Returns the run that a reason opens; `None` if it opens none.
pub(super) fn pending_run(run: RunId, reason: &TriggerReason) -> Option<PendingRun> {
    Some(PendingRun {
        branch: reason.branch().map(str::to_owned),
        ..PendingRun::new(run, reason.job()?, reason.lane()?)
    })
}

fn open_pending_run(
    row: &mut TicketRow,
    asked: PendingRun,
    trigger: &Trigger,
    now: Timestamp,
    steps: &mut Vec<FoldStep>,
) {
    if asked.lane.replaces() {
        for earlier in live_runs(row, |earlier| earlier.job == asked.job) {
            end_run(row, earlier, StopReason::Superseded, now, steps);
        }
    }
    steps.push(FoldStep::Open {
        run: asked.run.clone(),
        trigger: Box::new(trigger.clone()),
    });
    row.open(asked, now);
}

/// Ends a run from outside, without a report: its cause is already known on the ticket.
fn end_run(row: &mut TicketRow, run: RunId, reason: StopReason, now: Timestamp, steps: &mut Vec<FoldStep>) {
    row.finish(&run, reason.clone(), now);
    steps.push(FoldStep::Pass {
        run,
        fact: Box::new(Fact::RunFinished { reason }),
    });
}

/// Restarts work towards a push onto a branch that has a foreign push. Only the journal knows whether a run
/// has pushed already; then the fact has no effect.
fn restart_work(row: &mut TicketRow, sequence: u64, reason: &TriggerReason, steps: &mut Vec<FoldStep>) {
    let TriggerReason::PullRequest(PullRequestEvent::PushedByOthers(pushed)) = reason else {
        return;
    };
    let pull_request = &pushed.pull_request;
    let works_there = |pending: &PendingRun| {
        let is_here =
            matches!(&pending.lane, Lane::Change { repository } if *repository == pull_request.repository);
        is_here && pending.branch.as_ref() == Some(&pull_request.branch)
    };
    for run in live_runs(row, works_there) {
        let fact = Fact::HeadMoved {
            head: pushed.head.clone(),
            by: Some(pushed.by.clone()),
            trigger: Some(sequence),
        };
        pass_fact(row, run, fact, steps);
    }
}

fn apply_reason(
    row: &mut TicketRow,
    sequence: u64,
    trigger: &Trigger,
    fence: RunFence,
    steps: &mut Vec<FoldStep>,
) {
    let by = actor_name(trigger);
    let mut notify = |id: OutboundId, request: OutboundAction| {
        // The id comes from the trigger's sequence, so a repeated fold sends the same report.
        let notice = OutboundRequest::notice(id, trigger.ticket.clone(), fence, trigger.at, request);
        steps.push(FoldStep::Notice(Box::new(notice)));
    };
    if let Some(to) = &trigger.seen {
        let seen = ReactionRequest {
            to: to.clone(),
            reaction: ReactionKind::Eyes,
        };
        notify(OutboundId::seen(&trigger.ticket, sequence), seen.into());
    }
    let id = OutboundId::notice(&trigger.ticket, sequence);
    match &trigger.reason {
        TriggerReason::Skipped(skipped) => notify(id, OutboundAction::Skipped(skipped.clone())),
        TriggerReason::CostAsked { on, cost } => {
            let (on, cost) = (on.clone(), cost.clone());
            notify(id, CostReply { on, cost }.into());
        }
        TriggerReason::HelpAsked { on, meant } => {
            let is_review = on.is_none() && row.is_review();
            let reply = HelpReply {
                on: on.clone(),
                is_review,
                meant: meant.clone(),
            };
            notify(id, reply.into());
        }
        TriggerReason::StopRequested { run } => {
            let stopped = match run {
                Some(run) => vec![run.clone()],
                // Maintenance after a merge must complete, so a stop of the ticket does not end it.
                None => live_runs(row, |pending| !pending.lane.must_complete()),
            };
            for run in stopped {
                pass_fact(row, run, Fact::StopRequested { by: by.clone() }, steps);
            }
        }
        TriggerReason::RetryRequested => retry_waiting_runs(row, sequence, trigger, steps),
        TriggerReason::NewsArrived(news) => pass_news(row, sequence, trigger.at, news, steps),
        TriggerReason::Decided(decision) => {
            pass_fact(
                row,
                decision.run.clone(),
                Fact::Decided {
                    decision: decision.clone(),
                    by,
                },
                steps,
            );
        }
        TriggerReason::ReportSettled(settled) => {
            if let OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(opened)) = &settled.outcome
                // A rebuilt row has the pull requests of its journals, and may fold the last trigger again.
                && !row.pull_requests.contains(opened)
            {
                row.pull_requests.push(opened.clone());
            }
            let fact = Fact::ReportSettled {
                id: settled.report.clone(),
                outcome: settled.outcome.clone(),
            };
            pass_fact(row, settled.run.clone(), fact, steps);
        }
        TriggerReason::ReviewWithdrawn { why } => {
            for run in live_runs(row, |pending| pending.job == Job::Review) {
                end_run(row, run, StopReason::Withdrawn { why: *why }, trigger.at, steps);
            }
        }
        TriggerReason::TicketLeft(departure) => {
            end_left_ticket(row, (id, trigger), departure, fence, steps);
        }
        TriggerReason::JobRequested(_) | TriggerReason::PullRequest(_) => {}
    }
}

/// Ends the work on a ticket that left its place, once. Maintenance after a merge still completes.
fn end_left_ticket(
    row: &mut TicketRow,
    (id, trigger): (OutboundId, &Trigger),
    departure: &TicketDeparture,
    fence: RunFence,
    steps: &mut Vec<FoldStep>,
) {
    if row.left.is_some() {
        return;
    }
    row.left = Some(departure.clone());
    for run in live_runs(row, |pending| !pending.lane.must_complete()) {
        end_run(
            row,
            run,
            StopReason::TicketLeft(departure.clone()),
            trigger.at,
            steps,
        );
    }
    let action = OutboundAction::TicketLeft(departure.clone());
    let notice = OutboundRequest::notice(id, trigger.ticket.clone(), fence, trigger.at, action);
    steps.push(FoldStep::Notice(Box::new(notice)));
}

/// Returns true if a ticket that is assigned again continues its run that waits for a retry. An API caller
/// always gets a new run, because the response names it.
fn should_resume(row: &TicketRow, asked: &PendingRun, trigger: &Trigger) -> bool {
    let waits = |run: &RunId| row.waiting_for_retry().any(|waiting| waiting.id == *run);
    let is_same = |live: &PendingRun| live.job == asked.job && live.lane == asked.lane && waits(&live.run);
    matches!(trigger.reason, TriggerReason::JobRequested(_))
        && trigger.source != TriggerChannel::Api
        && row.pending.iter().any(is_same)
}

/// Passes news to the live runs that it may concern. A parked run stays parked and reads it later; a run
/// that waits for an answer wakes if the author may instruct.
fn pass_news(
    row: &mut TicketRow,
    sequence: u64,
    at: Timestamp,
    news: &TicketNews,
    steps: &mut Vec<FoldStep>,
) {
    let TicketNews::Comment { comment, .. } = news;
    let concerns = |lane: &Lane| match (lane, news.repository()) {
        (Lane::Change { repository }, Some(about)) => repository == about,
        (lane, _) => lane.hears_news(),
    };
    for run in live_runs(row, |pending| concerns(&pending.lane)) {
        let fact = Fact::NewsArrived {
            sequence,
            at,
            news: news.clone(),
        };
        let waits = RunStatus::Parked {
            waits_for: WaitCondition::Answer,
        };
        match row.run_mut(&run) {
            Some(summary) if summary.status == waits && comment.may_instruct => {
                pass_fact(row, run, fact, steps)
            }
            _ => steps.push(FoldStep::Pass {
                run,
                fact: Box::new(fact),
            }),
        }
    }
}

/// Retries waiting runs. A run that news in the same fold has woken may still wait for its retry; a run
/// without a retry ignores the fact.
fn retry_waiting_runs(row: &mut TicketRow, sequence: u64, trigger: &Trigger, steps: &mut Vec<FoldStep>) {
    let is_awake = |run: &&RunSummary| matches!(run.status, RunStatus::Queued | RunStatus::Active);
    let awake = row.runs.iter().filter(is_awake);
    let waiting: Vec<RunId> = row
        .waiting_for_retry()
        .chain(awake)
        .map(|run| run.id.clone())
        .collect();
    let by = Some(actor_name(trigger));
    for run in waiting {
        let fact = Fact::Retried {
            by: by.clone(),
            trigger: Some(sequence),
        };
        pass_fact(row, run, fact, steps);
    }
}

fn actor_name(trigger: &Trigger) -> String {
    trigger.actor.clone().unwrap_or_else(|| "somebody".to_owned())
}

/// Passes a fact to a live run; a parked one is queued. A finished run ignores it.
fn pass_fact(row: &mut TicketRow, run: RunId, fact: Fact, steps: &mut Vec<FoldStep>) {
    let Some(summary) = row.run_mut(&run) else { return };
    match summary.status {
        RunStatus::Finished { .. } => return,
        RunStatus::Parked { .. } => summary.status = RunStatus::Queued,
        RunStatus::Queued | RunStatus::Active => {}
    }
    steps.push(FoldStep::Pass {
        run,
        fact: Box::new(fact),
    });
}

/// Returns the matching live runs, oldest first.
fn live_runs(row: &TicketRow, is_meant: impl Fn(&PendingRun) -> bool) -> Vec<RunId> {
    row.pending
        .iter()
        .filter(|pending| is_meant(pending))
        .map(|pending| pending.run.clone())
        .collect()
}

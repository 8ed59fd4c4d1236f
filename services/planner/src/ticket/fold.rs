//! Folds a ticket's triggers into its row.

use domain::{
    Fact, Job, Lane, News, Pending, Reaction, Reason, Receipt, Report, ReportId, ReportOutcome,
    ReportRequest, Row, RunFence, RunId, RunStatus, RunSummary, Source, StopReason, TicketKey, Timestamp,
    Trigger, WaitsFor,
    report::{CostTold, React},
};

/// Consequence of a trigger beyond the row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Starts the run with this trigger.
    Open { run: RunId, trigger: Box<Trigger> },
    /// Passes a fact to a live run.
    Tell { run: RunId, fact: Box<Fact> },
    /// Sends a notice to the ticket without a run.
    Notice(Box<Report>),
}

/// Returns the row after the triggers, and their consequences in order. A repeated fold after a crash
/// returns the same.
pub(super) fn fold(
    mut row: Row,
    ticket: &TicketKey,
    triggers: &[(u64, Trigger)],
    fence: RunFence,
    now: Timestamp,
) -> (Row, Vec<Step>) {
    let mut steps = Vec::new();
    for (sequence, trigger) in triggers {
        if *sequence <= row.cursor {
            continue;
        }
        // The trigger's sequence names the run, so a repeated fold names the same run.
        match pending(RunId::new(ticket.clone(), *sequence), &trigger.reason) {
            Some(asked) if resumes(&row, &asked, trigger) => try_again(&mut row, trigger, &mut steps),
            Some(asked) => {
                begin_again(&mut row, &trigger.reason, &mut steps);
                open(&mut row, asked, trigger, now, &mut steps);
            }
            None => hear(&mut row, *sequence, trigger, fence, &mut steps),
        }
        row.cursor = *sequence;
    }
    (row, steps)
}

/// Returns the run that a reason opens; `None` if it opens none.
pub(super) fn pending(run: RunId, reason: &Reason) -> Option<Pending> {
    Some(Pending {
        branch: reason.branch().map(str::to_owned),
        ..Pending::new(run, reason.job()?, reason.lane()?)
    })
}

fn open(row: &mut Row, asked: Pending, trigger: &Trigger, now: Timestamp, steps: &mut Vec<Step>) {
    if asked.lane.replaces() {
        for earlier in live(row, |earlier| earlier.job == asked.job) {
            finish(row, earlier, StopReason::Superseded, now, steps);
        }
    }
    steps.push(Step::Open {
        run: asked.run.clone(),
        trigger: Box::new(trigger.clone()),
    });
    row.open(asked, now);
}

/// Ends a run from outside, without a report: its cause is already known on the ticket.
fn finish(row: &mut Row, run: RunId, reason: StopReason, now: Timestamp, steps: &mut Vec<Step>) {
    row.finish(&run, reason.clone(), now);
    steps.push(Step::Tell {
        run,
        fact: Box::new(Fact::RunFinished { reason }),
    });
}

/// Restarts work towards a push onto a branch that has a foreign push. Only the journal knows whether a run
/// has pushed already; then the fact has no effect.
fn begin_again(row: &mut Row, reason: &Reason, steps: &mut Vec<Step>) {
    let Reason::HeadMoved {
        pull_request,
        head,
        by,
    } = reason
    else {
        return;
    };
    let works_there = |pending: &Pending| {
        let is_here =
            matches!(&pending.lane, Lane::Change { repository } if *repository == pull_request.repository);
        is_here && pending.branch.as_ref() == Some(&pull_request.branch)
    };
    for run in live(row, works_there) {
        let fact = Fact::HeadMoved {
            head: head.clone(),
            by: Some(by.clone()),
        };
        tell(row, run, fact, steps);
    }
}

fn hear(row: &mut Row, sequence: u64, trigger: &Trigger, fence: RunFence, steps: &mut Vec<Step>) {
    let by = by(trigger);
    let mut tell_people = |id: ReportId, request: ReportRequest| {
        // The id comes from the trigger's sequence, so a repeated fold sends the same report.
        let notice = Report::notice(id, trigger.ticket.clone(), fence, trigger.at, request);
        steps.push(Step::Notice(Box::new(notice)));
    };
    if let Some(to) = &trigger.seen {
        let seen = React {
            to: to.clone(),
            reaction: Reaction::Eyes,
        };
        tell_people(ReportId::seen(&trigger.ticket, sequence), seen.into());
    }
    let id = ReportId::notice(&trigger.ticket, sequence);
    match &trigger.reason {
        Reason::Skipped(skipped) => tell_people(id, ReportRequest::Skipped(skipped.clone())),
        Reason::CostAsked { on, cost } => {
            let (on, cost) = (on.clone(), cost.clone());
            tell_people(id, CostTold { on, cost }.into());
        }
        Reason::StopRequested { run } => {
            let stopped = match run {
                Some(run) => vec![run.clone()],
                // Maintenance after a merge must complete, so a stop of the ticket does not end it.
                None => live(row, |pending| !pending.lane.must_complete()),
            };
            for run in stopped {
                tell(row, run, Fact::StopRequested { by: by.clone() }, steps);
            }
        }
        Reason::RetryRequested => try_again(row, trigger, steps),
        Reason::NewsArrived(news) => pass_on(row, sequence, trigger.at, news, steps),
        Reason::Decided(decision) => {
            tell(
                row,
                decision.run.clone(),
                Fact::Decided {
                    decision: decision.clone(),
                    by,
                },
                steps,
            );
        }
        Reason::ReportSettled(settled) => {
            if let ReportOutcome::Done(Receipt::PullRequestOpened(opened)) = &settled.outcome
                && !row.pull_requests.contains(opened)
            {
                row.pull_requests.push(opened.clone());
            }
            let fact = Fact::ReportSettled {
                id: settled.report.clone(),
                outcome: settled.outcome.clone(),
            };
            tell(row, settled.run.clone(), fact, steps);
        }
        Reason::ReviewWithdrawn { why } => {
            for run in live(row, |pending| pending.job == Job::Review) {
                finish(row, run, StopReason::Withdrawn { why: *why }, trigger.at, steps);
            }
        }
        Reason::JobRequested(_)
        | Reason::ChecksCompleted(_)
        | Reason::HeadMoved { .. }
        | Reason::PullRequestMerged { .. }
        | Reason::MergedElsewhere { .. }
        | Reason::PullRequestReopened { .. }
        | Reason::ReviewAwaited { .. }
        | Reason::PullRequestClosed { .. } => {}
    }
}

/// Returns true if a ticket that is assigned again continues its run that waits for a retry. An API caller
/// always gets a new run, because the response names it.
fn resumes(row: &Row, asked: &Pending, trigger: &Trigger) -> bool {
    let waits = |run: &RunId| row.waiting_for_retry().any(|waiting| waiting.id == *run);
    let is_same = |live: &Pending| live.job == asked.job && live.lane == asked.lane && waits(&live.run);
    matches!(trigger.reason, Reason::JobRequested(_))
        && trigger.source != Source::Api
        && row.pending.iter().any(is_same)
}

/// Passes news to the live runs that it may concern. A parked run stays parked and reads it later; a run
/// that waits for an answer wakes if the author may instruct.
fn pass_on(row: &mut Row, sequence: u64, at: Timestamp, news: &News, steps: &mut Vec<Step>) {
    let News::Comment { comment, .. } = news;
    let concerns = |lane: &Lane| match (lane, news.repository()) {
        (Lane::Change { repository }, Some(about)) => repository == about,
        (lane, _) => lane.hears_news(),
    };
    for run in live(row, |pending| concerns(&pending.lane)) {
        let fact = Fact::NewsArrived {
            sequence,
            at,
            news: news.clone(),
        };
        let waits = RunStatus::Parked {
            waits_for: WaitsFor::Answer,
        };
        match row.run_mut(&run) {
            Some(summary) if summary.status == waits && comment.may_instruct => tell(row, run, fact, steps),
            _ => steps.push(Step::Tell {
                run,
                fact: Box::new(fact),
            }),
        }
    }
}

/// Retries waiting runs. A run that news in the same fold has woken may still wait for its retry; a run
/// without a retry ignores the fact.
fn try_again(row: &mut Row, trigger: &Trigger, steps: &mut Vec<Step>) {
    let is_awake = |run: &&RunSummary| matches!(run.status, RunStatus::Queued | RunStatus::Active);
    let awake = row.runs.iter().filter(is_awake);
    let waiting: Vec<RunId> = row
        .waiting_for_retry()
        .chain(awake)
        .map(|run| run.id.clone())
        .collect();
    let by = Some(by(trigger));
    for run in waiting {
        tell(row, run, Fact::Retried { by: by.clone() }, steps);
    }
}

fn by(trigger: &Trigger) -> String {
    trigger.actor.clone().unwrap_or_else(|| "somebody".to_owned())
}

/// Passes a fact to a live run; a parked one is queued. A finished run ignores it.
fn tell(row: &mut Row, run: RunId, fact: Fact, steps: &mut Vec<Step>) {
    let Some(summary) = row.run_mut(&run) else { return };
    match summary.status {
        RunStatus::Finished { .. } => return,
        RunStatus::Parked { .. } => summary.status = RunStatus::Queued,
        RunStatus::Queued | RunStatus::Active => {}
    }
    steps.push(Step::Tell {
        run,
        fact: Box::new(fact),
    });
}

/// Returns the matching live runs, oldest first.
fn live(row: &Row, is_meant: impl Fn(&Pending) -> bool) -> Vec<RunId> {
    row.pending
        .iter()
        .filter(|pending| is_meant(pending))
        .map(|pending| pending.run.clone())
        .collect()
}

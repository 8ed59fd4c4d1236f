//! Folds a ticket's triggers into its row.

use domain::{
    Fact, Job, Lane, News, Pending, Reaction, Reason, Receipt, Report, ReportId, ReportOutcome,
    ReportRequest, Row, RunFence, RunId, RunStatus, RunSummary, Source, StopReason, TicketKey, Timestamp,
    Trigger, WaitsFor,
    report::{CostTold, React},
};

/// What a trigger calls for beyond the row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// The run begins with this trigger.
    Open { run: RunId, trigger: Box<Trigger> },
    /// A live run hears of this.
    Tell { run: RunId, fact: Box<Fact> },
    /// The ticket hears something without a run.
    Notice(Box<Report>),
}

/// The row after the triggers, and what they call for, in order. Folding again after a crash gives the same.
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

/// The run that a reason opens, waiting for its turn; `None` when it opens none.
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

/// Ends a run from outside. It tells nobody: what ended it is known to them.
fn finish(row: &mut Row, run: RunId, reason: StopReason, now: Timestamp, steps: &mut Vec<Step>) {
    row.finish(&run, reason.clone(), now);
    steps.push(Step::Tell {
        run,
        fact: Box::new(Fact::RunFinished { reason }),
    });
}

/// Work towards a push onto a branch that somebody else pushed to begins again on their commit. A run that has pushed already
/// has no use for it, which only its journal knows.
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

/// A ticket that is given back while its run waits for a retry goes on with that run and what it has done so far. A
/// caller of the API was promised a run of its own.
fn resumes(row: &Row, asked: &Pending, trigger: &Trigger) -> bool {
    let waits = |run: &RunId| row.waiting_for_retry().any(|waiting| waiting.id == *run);
    let is_same = |live: &Pending| live.job == asked.job && live.lane == asked.lane && waits(&live.run);
    matches!(trigger.reason, Reason::JobRequested(_))
        && trigger.source != Source::Api
        && row.pending.iter().any(is_same)
}

/// News become input of the live runs that they may concern. A parked run stays parked, and reads them when what it waits
/// for is there; for one that waits for an answer, they may be it where their author may instruct.
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

/// A run that news of the same moment have just woken may wait for its retry all the same; one that does not has no use
/// for it.
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

/// Tells a run; one that was parked waits for its turn now. A run that is not live hears nothing any more.
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

/// Some of the live runs, oldest first.
fn live(row: &Row, is_meant: impl Fn(&Pending) -> bool) -> Vec<RunId> {
    row.pending
        .iter()
        .filter(|pending| is_meant(pending))
        .map(|pending| pending.run.clone())
        .collect()
}

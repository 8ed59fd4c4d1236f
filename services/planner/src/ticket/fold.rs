//! Folds a ticket's triggers into its row.

use domain::{
    Admission, Fact, Job, Reason, Receipt, Report, ReportId, ReportOutcome, ReportRequest, Row, RunFence,
    RunId, RunStatus, Source, StopReason, TicketKey, Timestamp, Trigger,
};

use crate::run::job_of;

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
        match job_of(trigger) {
            Some(job) if resumes(&row, job, trigger) => try_again(&mut row, trigger, &mut steps),
            Some(job) => open(
                &mut row,
                RunId::new(ticket.clone(), *sequence),
                (job, trigger),
                now,
                &mut steps,
            ),
            None => hear(&mut row, *sequence, trigger, fence, &mut steps),
        }
        row.cursor = *sequence;
    }
    (row, steps)
}

fn open(row: &mut Row, run: RunId, (job, trigger): (Job, &Trigger), now: Timestamp, steps: &mut Vec<Step>) {
    if job.admission() == Admission::CancelRunning {
        for earlier in live(row, |earlier| earlier == job) {
            row.finish(&earlier, StopReason::Superseded, now);
            steps.push(Step::Tell {
                run: earlier,
                fact: Box::new(Fact::RunFinished {
                    reason: StopReason::Superseded,
                }),
            });
        }
    }
    row.open(run.sequence(), run.clone(), job, now);
    steps.push(Step::Open {
        run,
        trigger: Box::new(trigger.clone()),
    });
}

fn hear(row: &mut Row, sequence: u64, trigger: &Trigger, fence: RunFence, steps: &mut Vec<Step>) {
    let by = by(trigger);
    match &trigger.reason {
        Reason::Skipped(skipped) => {
            let id = ReportId::notice(&trigger.ticket, sequence);
            let request = ReportRequest::Skipped(skipped.clone());
            let notice = Report::notice(id, trigger.ticket.clone(), fence, trigger.at, request);
            steps.push(Step::Notice(Box::new(notice)));
        }
        Reason::StopRequested { run } => {
            let stopped = match run {
                Some(run) => vec![run.clone()],
                None => live(row, |job| job.admission() != Admission::Beside),
            };
            for run in stopped {
                tell(row, run, Fact::StopRequested { by: by.clone() }, steps);
            }
        }
        Reason::RetryRequested => try_again(row, trigger, steps),
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
        Reason::JobRequested(_)
        | Reason::ChecksCompleted(_)
        | Reason::PullRequestMerged { .. }
        | Reason::PullRequestClosed { .. } => {}
    }
}

/// A ticket that is given back while its run waits for a retry goes on with that run and what it has done so far. A
/// caller of the API was promised a run of its own.
fn resumes(row: &Row, job: Job, trigger: &Trigger) -> bool {
    matches!(trigger.reason, Reason::JobRequested(_))
        && trigger.source != Source::Api
        && row.waiting_for_retry().any(|run| run.job == job)
}

fn try_again(row: &mut Row, trigger: &Trigger, steps: &mut Vec<Step>) {
    let waiting: Vec<RunId> = row.waiting_for_retry().map(|run| run.id.clone()).collect();
    let by = Some(by(trigger));
    for run in waiting {
        tell(row, run, Fact::Retried { by: by.clone() }, steps);
    }
}

fn by(trigger: &Trigger) -> String {
    trigger.actor.clone().unwrap_or_else(|| "somebody".to_owned())
}

/// A run that is not live hears nothing any more.
fn tell(row: &mut Row, run: RunId, fact: Fact, steps: &mut Vec<Step>) {
    let Some(summary) = row.run_mut(&run) else { return };
    match summary.status {
        RunStatus::Finished { .. } => return,
        RunStatus::Parked { .. } => summary.status = RunStatus::Active,
        RunStatus::Queued | RunStatus::Active => {}
    }
    steps.push(Step::Tell {
        run,
        fact: Box::new(fact),
    });
}

/// The live runs of some kinds of work, oldest first.
fn live(row: &Row, is_meant: impl Fn(Job) -> bool) -> Vec<RunId> {
    row.pending
        .iter()
        .filter(|pending| is_meant(pending.job))
        .map(|pending| pending.run.clone())
        .collect()
}

/// The run to drive next: those that start beside others first, then the oldest of those that wait for each other.
pub(super) fn next_run(row: &Row) -> Option<RunId> {
    let parked = |run: &RunId| {
        matches!(
            row.run(run).map(|run| &run.status),
            Some(RunStatus::Parked { .. })
        )
    };
    let queued = |job: Job| job.admission() == Admission::Queue;
    let beside = row
        .pending
        .iter()
        .find(|pending| !queued(pending.job) && !parked(&pending.run));
    let oldest = row
        .pending
        .iter()
        .find(|pending| queued(pending.job))
        .filter(|oldest| !parked(&oldest.run));
    beside.or(oldest).map(|pending| pending.run.clone())
}

/// True when a run in hand must hear of the trigger before its step ends.
pub(super) fn cuts(trigger: &Trigger) -> bool {
    matches!(trigger.reason, Reason::StopRequested { .. })
        || job_of(trigger).is_some_and(|job| job.admission() == Admission::CancelRunning)
}

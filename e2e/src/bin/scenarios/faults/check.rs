//! Invariants, checked on the stand-ins' final state and the stored records.

use domain::{Job, RunStatus, RunSummary, StopReason, TicketRow};
use e2e::{
    NoteCourse, TestWorld,
    findings::{self, BrokenPromise, TicketFindings, TicketProblem},
};
use queue::KeyValueBucket;

use crate::faults::people::FaultTicket;

/// Returns all current problems.
pub(crate) async fn check_invariants(world: &TestWorld, tickets: &[FaultTicket]) -> Vec<TicketProblem> {
    let notes: Vec<_> = tickets.iter().map(|ticket| &ticket.note).collect();
    let mut problems = findings::find_outside_problems(world, &notes);
    match check_stored(world, tickets).await {
        Ok(mut found) => problems.append(&mut found),
        Err(error) => problems.push(TicketProblem::general(format!("what is stored: {error:#}"))),
    }
    problems
}

async fn check_stored(world: &TestWorld, tickets: &[FaultTicket]) -> anyhow::Result<Vec<TicketProblem>> {
    let mut problems: Vec<TicketProblem> = world
        .dead_letters()
        .await?
        .into_iter()
        .map(|letter| TicketProblem::general(format!("dead letter: {letter}")))
        .collect();
    let rows = world
        .queue()
        .await?
        .table::<TicketRow>(KeyValueBucket::Tickets)
        .list()
        .await?;
    for ticket in tickets {
        let mut findings = TicketFindings::of(&ticket.note.key);
        let key = format!("jira:{}", ticket.note.key);
        match rows
            .iter()
            .find(|(known, _)| *known == queue::RecordKey::from(&key))
        {
            None => findings.add(BrokenPromise::Lost, "no row".to_owned()),
            Some((_, row)) => of_row(row, ticket.note.course, &mut findings),
        }
        problems.extend(findings.into_problems());
    }
    Ok(problems)
}

fn of_row(row: &TicketRow, course: NoteCourse, findings: &mut TicketFindings<'_>) {
    if let Some(reason) = &row.quarantined {
        findings.add(BrokenPromise::Lost, format!("set aside: {reason}"));
    }
    if row.opened > course.most_runs() {
        findings.add(BrokenPromise::Doubled, format!("{} runs", row.opened));
    }
    for run in &row.runs {
        if !has_ended_well(run) {
            findings.add(BrokenPromise::Lost, format!("{} is {:?}", run.id, run.status));
        }
    }
}

/// True for a completed run, and for a resolution of a head that another one has replaced.
fn has_ended_well(run: &RunSummary) -> bool {
    let RunStatus::Finished { reason } = &run.status else {
        return false;
    };
    *reason == StopReason::Completed || (run.job == Job::ResolveConflict && *reason == StopReason::Superseded)
}

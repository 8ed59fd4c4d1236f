//! Invariants, checked on the stand-ins' final state and the stored records.

use domain::{RunStatus, StopReason, TicketRow};
use e2e::{
    TestWorld,
    findings::{self, BrokenPromise, TicketFindings, TicketProblem},
};
use queue::KeyValueBucket;

use crate::faults::people::FaultTicket;

/// Number of runs per ticket: `implement`, `mark_ready` and `finish`.
const RUNS: u32 = 3;

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
            Some((_, row)) => of_row(row, &mut findings),
        }
        problems.extend(findings.into_problems());
    }
    Ok(problems)
}

fn of_row(row: &TicketRow, findings: &mut TicketFindings<'_>) {
    if let Some(reason) = &row.quarantined {
        findings.add(BrokenPromise::Lost, format!("set aside: {reason}"));
    }
    if row.opened > RUNS {
        findings.add(BrokenPromise::Doubled, format!("{} runs", row.opened));
    }
    for run in &row.runs {
        let is_good =
            matches!(&run.status, RunStatus::Finished { reason } if *reason == StopReason::Completed);
        if !is_good {
            findings.add(BrokenPromise::Lost, format!("{} is {:?}", run.id, run.status));
        }
    }
}

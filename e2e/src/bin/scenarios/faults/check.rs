//! Invariants, checked on the stand-ins' final state and the stored records.

use domain::{Row, RunStatus, StopReason};
use e2e::{
    World,
    findings::{self, Broken, Findings, Problem},
};
use queue::Bucket;

use crate::faults::people::Ticket;

/// Number of runs per ticket: `implement`, `mark_ready` and `finish`.
const RUNS: u32 = 3;

/// Returns all current problems.
pub(crate) async fn check(world: &World, tickets: &[Ticket]) -> Vec<Problem> {
    let notes: Vec<_> = tickets.iter().map(|ticket| &ticket.note).collect();
    let mut problems = findings::outside(world, &notes);
    match stored(world, tickets).await {
        Ok(mut found) => problems.append(&mut found),
        Err(error) => problems.push(Problem::general(format!("what is stored: {error:#}"))),
    }
    problems
}

async fn stored(world: &World, tickets: &[Ticket]) -> anyhow::Result<Vec<Problem>> {
    let mut problems: Vec<Problem> = world
        .dead_letters()
        .await?
        .into_iter()
        .map(|letter| Problem::general(format!("dead letter: {letter}")))
        .collect();
    let rows = world.queue().await?.table::<Row>(Bucket::Tickets).list().await?;
    for ticket in tickets {
        let mut findings = Findings::of(&ticket.note.key);
        let key = format!("jira:{}", ticket.note.key);
        match rows.iter().find(|(known, _)| *known == queue::Key::from(&key)) {
            None => findings.add(Broken::Lost, "no row".to_owned()),
            Some((_, row)) => of_row(row, &mut findings),
        }
        problems.extend(findings.into_problems());
    }
    Ok(problems)
}

fn of_row(row: &Row, findings: &mut Findings<'_>) {
    if let Some(reason) = &row.quarantined {
        findings.add(Broken::Lost, format!("set aside: {reason}"));
    }
    if row.opened > RUNS {
        findings.add(Broken::Doubled, format!("{} runs", row.opened));
    }
    for run in &row.runs {
        let is_good =
            matches!(&run.status, RunStatus::Finished { reason } if *reason == StopReason::Completed);
        if !is_good {
            findings.add(Broken::Lost, format!("{} is {:?}", run.id, run.status));
        }
    }
}

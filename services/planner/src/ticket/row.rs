//! The row of a ticket, rebuilt from the journals where it cannot be read.

use domain::{
    Entry, Fact, Receipt, RecordKind, ReportOutcome, Row, RunId, RunStatus, TicketKey, cause::chain,
};
use queue::{Bucket, DeadLetter, Found, Queue, Revision, Unreadable};

use super::fold::pending;
use crate::driver::Trouble;
use crate::run::RunState;

/// The ticket's row as it is to be worked with, and the revision to write over.
pub(super) async fn row_of(queue: &Queue, ticket: &TicketKey) -> Result<(Row, Option<Revision>), Trouble> {
    let rows = queue.table::<Row>(Bucket::Tickets);
    Ok(match rows.find(&ticket.to_string()).await? {
        Some(Found::Value(row, revision)) => (row, Some(revision)),
        Some(Found::Unreadable(unreadable)) => {
            let lost = unreadable.unless_newer()?;
            (rebuilt_row(queue, ticket, &lost).await?, Some(lost.revision()))
        }
        None => (Row::default(), None),
    })
}

/// The row of a ticket whose row cannot be read: its runs as their journals tell, and every trigger since the oldest
/// live one folded again, which changes nothing where it was folded before.
async fn rebuilt_row(queue: &Queue, ticket: &TicketKey, lost: &Unreadable) -> Result<Row, Trouble> {
    tracing::error!(%ticket, problem = lost.problem(), "row rebuilt from the journals");
    let advice = "it was rebuilt from the ticket's journals, and there is nothing to do";
    let (id, about) = (ticket.to_string(), Some(ticket.clone()));
    let letter = DeadLetter::about(lost, RecordKind::Row, id, about, advice, bootstrap::now());
    queue.dead_letters().bury(&letter, lost).await?;
    let mut row = Row::default();
    for run in queue.journal().runs_of(ticket).await? {
        let entries = match queue.journal().read(&run).await {
            Err(error @ queue::Error::Corrupt { .. }) => {
                tracing::error!(%run, error = %chain(&error), "run left out of the row");
                continue;
            }
            entries => entries?,
        };
        let entries: Vec<Entry> = entries.into_iter().map(|(_, entry)| entry).collect();
        if let Some(state) = RunState::fold(&run, &entries)? {
            add(&mut row, &run, &state, &entries);
        }
    }
    let live = row.pending.iter().map(|pending| pending.sequence).min();
    let newest = row.runs.iter().map(|run| run.id.sequence()).max();
    row.cursor = live.or(newest).unwrap_or_default();
    Ok(row)
}

fn add(row: &mut Row, run: &RunId, state: &RunState, entries: &[Entry]) {
    let Some(Entry {
        at: started_at,
        fact: Fact::RunStarted { trigger },
        ..
    }) = entries.first()
    else {
        return;
    };
    let Some(asked) = pending(run.clone(), &trigger.reason) else {
        return;
    };
    row.open(asked, *started_at);
    if let Some(branch) = state.branch() {
        row.set_branch(run, branch);
    }
    if let Some(summary) = row.run_mut(run) {
        summary.turns = u32::try_from(state.turns()).unwrap_or(u32::MAX);
        if let Some(waits_for) = state.parked {
            summary.status = RunStatus::Parked { waits_for };
        }
    }
    if let Some(reason) = state.finished.clone() {
        let finished_at = entries.last().map_or(*started_at, |entry| entry.at);
        row.finish(run, reason, finished_at);
    }
    for entry in entries {
        if let Fact::ReportSettled {
            outcome: ReportOutcome::Done(Receipt::PullRequestOpened(opened)),
            ..
        } = &entry.fact
            && !row.pull_requests.contains(opened)
        {
            row.pull_requests.push(opened.clone());
        }
    }
}

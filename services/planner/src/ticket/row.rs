//! Row of a ticket. An unreadable row is rebuilt from the journals.

use domain::{
    Fact, JournalEntry, OutboundOutcome, OutboundReceipt, RecordKind, RunId, RunStatus, TicketKey, TicketRow,
    cause::format_error_chain,
};
use queue::{DeadLetter, FoundValue, KeyValueBucket, Queue, TableRevision, UnreadableRecord};

use super::fold::pending_run;
use crate::driver::TicketError;
use crate::run::PlannerRunState;

/// Reads the row of a ticket and the revision that the next write replaces. An unreadable row becomes a dead letter and is rebuilt.
pub(super) async fn read_row(
    queue: &Queue,
    ticket: &TicketKey,
) -> Result<(TicketRow, Option<TableRevision>), TicketError> {
    let rows = queue.table::<TicketRow>(KeyValueBucket::Tickets);
    Ok(match rows.find(&ticket.to_string()).await? {
        Some(FoundValue::Value(row, revision)) => (row, Some(revision)),
        Some(FoundValue::Unreadable(unreadable)) => {
            let lost = unreadable.unless_newer()?;
            (rebuild_row(queue, ticket, &lost).await?, Some(lost.revision()))
        }
        None => (TicketRow::default(), None),
    })
}

/// Rebuilds the row of a ticket: its runs from their journals, with the cursor before the oldest live run. The
/// triggers after it are folded again, which changes nothing for those that were folded before.
async fn rebuild_row(
    queue: &Queue,
    ticket: &TicketKey,
    lost: &UnreadableRecord,
) -> Result<TicketRow, TicketError> {
    tracing::error!(%ticket, problem = lost.problem(), "row rebuilt from the journals");
    let advice = "it was rebuilt from the ticket's journals, and there is nothing to do";
    let (id, about) = (ticket.to_string(), Some(ticket.clone()));
    let letter = DeadLetter::about(
        lost,
        RecordKind::Row,
        id,
        about,
        advice,
        bootstrap::read_wall_clock(),
    );
    // First, because the save at the takeover overwrites the unreadable bytes.
    queue.dead_letters().bury(&letter, lost).await?;
    let mut row = TicketRow::default();
    for run in queue.journal().runs_of(ticket).await? {
        let entries = match queue.journal().read(&run).await {
            Err(error @ queue::Error::Corrupt { .. }) => {
                tracing::error!(%run, error = %format_error_chain(&error), "run left out of the row");
                continue;
            }
            entries => entries?,
        };
        let entries: Vec<JournalEntry> = entries.into_iter().map(|(_, entry)| entry).collect();
        if let Some(state) = PlannerRunState::fold(&run, &entries)? {
            add_run(&mut row, &run, &state, &entries);
        }
    }
    // The trigger of the oldest live run opened it, so every earlier trigger is folded.
    let live = row.pending.iter().map(|pending| pending.sequence).min();
    let newest = row.runs.iter().map(|run| run.id.sequence()).max();
    row.cursor = live.or(newest).unwrap_or_default();
    Ok(row)
}

fn add_run(row: &mut TicketRow, run: &RunId, state: &PlannerRunState, entries: &[JournalEntry]) {
    let Some(JournalEntry {
        at: started_at,
        fact: Fact::RunStarted { trigger },
        ..
    }) = entries.first()
    else {
        return;
    };
    let Some(asked) = pending_run(run.clone(), &trigger.reason) else {
        return;
    };
    row.open(asked, *started_at);
    if let Some(branch) = state.source().branch() {
        row.set_branch(run, branch);
    }
    if let Some(summary) = row.run_mut(run) {
        summary.turns = u32::try_from(state.conversation().turn_count()).unwrap_or(u32::MAX);
        if let Some(waits_for) = state.lifecycle().parked() {
            summary.status = RunStatus::Parked { waits_for };
        }
    }
    if let Some(reason) = state.lifecycle().finished().cloned() {
        let finished_at = entries.last().map_or(*started_at, |entry| entry.at);
        row.finish(run, reason, finished_at);
    }
    for entry in entries {
        if let Fact::ReportSettled {
            outcome: OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(opened)),
            ..
        } = &entry.fact
            && !row.pull_requests.contains(opened)
        {
            row.pull_requests.push(opened.clone());
        }
    }
}

//! Tickets from the request to the merged pull request.

use std::time::Duration;

use anyhow::Context;
use api::Client;
use e2e::{
    NoteTicket, StandInVendors,
    findings::{self, BrokenPromise, TicketFindings, TicketProblem},
};
use serde_json::Value;
use testkit::fixture;
use tokio::time::Instant;

use crate::cluster_test::{
    containment::MARK,
    names::{TicketOrder, TicketRound, parse_ticket_key},
};

/// Interval between two checks of all tickets.
const TICK: Duration = Duration::from_millis(200);
/// Time limit of a round.
pub(crate) const LIMIT: Duration = Duration::from_secs(900);
/// Number of runs per ticket: `implement`, `mark_ready` and `finish`.
const RUNS: usize = 3;

/// Requests the tickets after the first `first` ones and acts as their users until all are done. `tell`
/// receives the progress.
///
/// # Errors
/// When the stand-ins or the API fail.
pub(crate) async fn play_tickets(
    vendors: &StandInVendors,
    client: &Client,
    order: &TicketOrder,
    first: usize,
    tell: impl Fn(TicketRound),
) -> anyhow::Result<TicketRound> {
    let start = Instant::now();
    let mut notes = (first + 1..=first + order.tickets)
        .map(|number| NoteTicket::ask(vendors, number))
        .collect::<anyhow::Result<Vec<_>>>()?;
    // These scripts replace those of `NoteTicket::ask`, because they contain the round's command.
    for note in &notes {
        let script = fixture::note_script_with(&note.key, &order.command);
        vendors.model.set_script(&note.marker, script);
    }
    let mut pause = ProgressPause::new(start);
    while start.elapsed() < LIMIT && !NoteTicket::attend_all(vendors, &mut notes)? {
        let round = count_notes(&notes, start);
        pause.note(round.done, Instant::now());
        tell(round);
        tokio::time::sleep(TICK).await;
    }
    let mut round = count_notes(&notes, start);
    round.pause_s = pause.end(Instant::now()).as_secs();
    let mut problems = findings::find_outside_problems(vendors, &notes.iter().collect::<Vec<_>>());
    problems.extend(find_api_problems(client, &notes).await?);
    let (lost, doubled): (Vec<_>, Vec<_>) = problems
        .into_iter()
        .partition(|problem| problem.broken == BrokenPromise::Lost);
    round.lost = lost.iter().map(ToString::to_string).collect();
    round.doubled = doubled.iter().map(ToString::to_string).collect();
    round.outputs = collect_outputs(vendors, &notes);
    Ok(round)
}

/// Longest time without a finished ticket.
struct ProgressPause {
    done: usize,
    since: Instant,
    longest: Duration,
}

impl ProgressPause {
    const fn new(start: Instant) -> Self {
        Self {
            done: 0,
            since: start,
            longest: Duration::ZERO,
        }
    }

    fn note(&mut self, done: usize, now: Instant) {
        if self.done < done {
            self.longest = self.longest.max(now - self.since);
            (self.done, self.since) = (done, now);
        }
    }

    fn end(self, now: Instant) -> Duration {
        self.longest.max(now - self.since)
    }
}

fn count_notes(notes: &[NoteTicket], start: Instant) -> TicketRound {
    TicketRound {
        tickets: notes.len(),
        done: notes.iter().filter(|note| note.done.is_some()).count(),
        wall_s: start.elapsed().as_secs(),
        ..TicketRound::default()
    }
}

/// Finds dead letters and surplus runs through the API.
async fn find_api_problems(client: &Client, notes: &[NoteTicket]) -> anyhow::Result<Vec<TicketProblem>> {
    let dead = client.dead_letters().list().await.context("the dead letters")?;
    let mut problems: Vec<_> = dead
        .into_iter()
        .map(|letter| TicketProblem::general(format!("dead letter: {letter:?}")))
        .collect();
    for note in notes {
        let mut findings = TicketFindings::of(&note.key);
        let runs = client
            .runs()
            .recent(Some(&parse_ticket_key(&note.key)?))
            .await
            .context("the runs")?;
        if runs.len() > RUNS {
            findings.add(BrokenPromise::Doubled, format!("{} runs", runs.len()));
        }
        problems.extend(findings.into_problems());
    }
    Ok(problems)
}

/// Returns the texts for the model that contain [`MARK`].
fn collect_outputs(vendors: &StandInVendors, notes: &[NoteTicket]) -> Vec<String> {
    let is_ours = |marker: &str| notes.iter().any(|note| note.marker == marker);
    let mut found = Vec::new();
    for call in vendors.model.calls().iter().filter(|call| is_ours(&call.marker)) {
        collect_texts(&call.request, &mut found);
    }
    // Each request repeats the earlier outputs.
    found.sort();
    found.dedup();
    found
}

fn collect_texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains(MARK) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| collect_texts(field, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_is_longest_time_without_progress() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let longest = |noted: &[(usize, u64)], end| {
            let mut pause = ProgressPause::new(start);
            for (done, seconds) in noted {
                pause.note(*done, at(*seconds));
            }
            pause.end(at(end)).as_secs()
        };
        assert_eq!(longest(&[(0, 4), (1, 9), (2, 10)], 12), 9);
        assert_eq!(longest(&[(1, 2), (1, 20), (2, 31)], 32), 29);
        assert_eq!(longest(&[(1, 2)], 50), 48);
    }
}

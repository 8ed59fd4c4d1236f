//! Tickets from the request to the merged pull request.

use std::time::Duration;

use anyhow::Context;
use api::Client;
use e2e::{
    Note, Vendors,
    findings::{self, Broken, Findings, Problem},
};
use serde_json::Value;
use testkit::fixture;
use tokio::time::Instant;

use crate::cluster_test::{
    contained::MARK,
    names::{Order, Round, ticket},
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
pub(crate) async fn play(
    vendors: &Vendors,
    client: &Client,
    order: &Order,
    first: usize,
    tell: impl Fn(Round),
) -> anyhow::Result<Round> {
    let start = Instant::now();
    let mut notes = (first + 1..=first + order.tickets)
        .map(|number| Note::ask(vendors, number))
        .collect::<anyhow::Result<Vec<_>>>()?;
    // These scripts replace those of `Note::ask`, because they contain the round's command.
    for note in &notes {
        let script = fixture::note_script_with(&note.key, &order.command);
        vendors.model.set_script(&note.marker, script);
    }
    let mut pause = ProgressPause::new(start);
    while start.elapsed() < LIMIT && !Note::attend_all(vendors, &mut notes)? {
        let round = counted(&notes, start);
        pause.note(round.done, Instant::now());
        tell(round);
        tokio::time::sleep(TICK).await;
    }
    let mut round = counted(&notes, start);
    round.pause_s = pause.end(Instant::now()).as_secs();
    let mut problems = findings::outside(vendors, &notes.iter().collect::<Vec<_>>());
    problems.extend(inside(client, &notes).await?);
    let (lost, doubled): (Vec<_>, Vec<_>) = problems
        .into_iter()
        .partition(|problem| problem.broken == Broken::Lost);
    round.lost = lost.iter().map(ToString::to_string).collect();
    round.doubled = doubled.iter().map(ToString::to_string).collect();
    round.outputs = outputs(vendors, &notes);
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

fn counted(notes: &[Note], start: Instant) -> Round {
    Round {
        tickets: notes.len(),
        done: notes.iter().filter(|note| note.done.is_some()).count(),
        wall_s: start.elapsed().as_secs(),
        ..Round::default()
    }
}

/// Finds dead letters and surplus runs through the API.
async fn inside(client: &Client, notes: &[Note]) -> anyhow::Result<Vec<Problem>> {
    let dead = client.dead_letters().await.context("the dead letters")?;
    let mut problems: Vec<_> = dead
        .into_iter()
        .map(|letter| Problem::general(format!("dead letter: {letter:?}")))
        .collect();
    for note in notes {
        let mut findings = Findings::of(&note.key);
        let runs = client.runs(Some(&ticket(&note.key)?)).await.context("the runs")?;
        if runs.len() > RUNS {
            findings.add(Broken::Doubled, format!("{} runs", runs.len()));
        }
        problems.extend(findings.into_problems());
    }
    Ok(problems)
}

/// Returns the texts for the model that contain [`MARK`].
fn outputs(vendors: &Vendors, notes: &[Note]) -> Vec<String> {
    let is_ours = |marker: &str| notes.iter().any(|note| note.marker == marker);
    let mut found = Vec::new();
    for call in vendors.model.calls().iter().filter(|call| is_ours(&call.marker)) {
        texts(&call.request, &mut found);
    }
    // Each request repeats the earlier outputs.
    found.sort();
    found.dedup();
    found
}

fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains(MARK) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
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

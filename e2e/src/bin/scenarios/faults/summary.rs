//! Output of the fault test: progress lines, figures, and the journals of failed tickets.

use std::{collections::BTreeMap, time::Duration};

use domain::Row;
use e2e::findings::{Broken, Problem};
use journeyman::timeline;
use queue::Bucket;
use testkit::fixture;
use tokio::time::Instant;

use crate::faults::{outside, people::Ticket, schedule::Schedule, stage::Stage};

/// Number of failed tickets whose journals are printed.
const SHOWN: usize = 3;

/// Prints a line to standard output.
#[expect(clippy::print_stdout, reason = "the program is its output")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Counters of the play.
#[derive(Default)]
pub(crate) struct Summary {
    pub(crate) strikes: usize,
    /// Time from a strike to the next step, for each ticket that was in progress.
    pub(crate) recoveries: Vec<Duration>,
}

impl Summary {
    /// Prints a progress line.
    pub(crate) fn tell(&self, start: Instant, tickets: &[Ticket]) {
        let done = tickets.iter().filter(|ticket| ticket.note.done.is_some()).count();
        say(&format!(
            "{:>5} s: {} strikes, {} tickets asked for, {done} done",
            start.elapsed().as_secs(),
            self.strikes,
            tickets.len()
        ));
    }

    /// Prints the figures and the problems.
    pub(crate) async fn print(
        &self,
        stage: &Stage,
        schedule: &Schedule,
        tickets: &[Ticket],
        problems: &[Problem],
    ) {
        let done: Vec<Duration> = tickets
            .iter()
            .filter_map(|ticket| Some(ticket.note.done? - ticket.note.asked))
            .collect();
        let calls = stage.world.model.call_counts();
        let calls: usize = calls.values().sum();
        let needed = tickets
            .iter()
            .map(|ticket| fixture::note_script(&ticket.note.key).len())
            .sum();
        let of = |broken| problems.iter().filter(|problem| problem.broken == broken).count();
        let mut strikes: BTreeMap<String, usize> = BTreeMap::new();
        for strike in &schedule.strikes[..self.strikes] {
            *strikes.entry(strike.fault.kind()).or_default() += 1;
        }
        say(&format!(
            "tickets {} done {} {}",
            tickets.len(),
            done.len(),
            times(&done)
        ));
        say(&format!("strikes {}", counts(&strikes)));
        say(&format!("outside {}", counts(&outside::met(&stage.world))));
        say(&format!(
            "recoveries {} {}",
            self.recoveries.len(),
            times(&self.recoveries)
        ));
        say(&format!(
            "model replies paid again {}",
            calls.saturating_sub(needed)
        ));
        for ended in &stage.ended {
            say(&format!("ended by itself: {ended}"));
        }
        for problem in problems {
            say(&problem.to_string());
        }
        let mut shown: Vec<&str> = problems
            .iter()
            .filter_map(|problem| problem.ticket.as_deref())
            .collect();
        shown.dedup();
        for ticket in shown.into_iter().take(SHOWN) {
            if let Err(error) = tell_all(stage, ticket).await {
                say(&format!("{ticket}: its journals cannot be read: {error:#}"));
            }
        }
        say(&format!("losses {}", of(Broken::Lost)));
        say(&format!("duplicates {}", of(Broken::Doubled)));
    }
}

/// Formats the median and the maximum of durations.
fn times(samples: &[Duration]) -> String {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let (middle, most) = (sorted.get(sorted.len() / 2), sorted.last());
    let seconds = |time: Option<&Duration>| time.copied().unwrap_or_default().as_secs_f64();
    format!("p50 {:.1} s max {:.1} s", seconds(middle), seconds(most))
}

fn counts(counts: &BTreeMap<String, usize>) -> String {
    let sum: usize = counts.values().sum();
    let each: Vec<_> = counts
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    format!("{sum}: {}", each.join("; "))
}

/// Prints a ticket's journals entry by entry.
async fn tell_all(stage: &Stage, key: &str) -> anyhow::Result<()> {
    let queue = stage.world.queue().await?;
    let rows = queue.table::<Row>(Bucket::Tickets);
    let Some((row, _)) = rows.get(&format!("jira:{key}")).await? else {
        return Ok(());
    };
    for run in &row.runs {
        say(&format!("{}:", run.id));
        let entries = queue.journal().read(&run.id).await?;
        let start = entries.first().map(|(_, entry)| entry.at).unwrap_or_default();
        for line in entries
            .iter()
            .filter_map(|(_, entry)| timeline::line(entry, start))
        {
            say(&line);
        }
    }
    Ok(())
}

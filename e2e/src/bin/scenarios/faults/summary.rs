//! Output of the fault test: progress lines, figures, and the journals of failed tickets.

use std::{collections::BTreeMap, time::Duration};

use domain::TicketRow;
use e2e::findings::{BrokenPromise, TicketProblem};
use journeyman::timeline;
use queue::KeyValueBucket;
use testkit::fixture;
use tokio::time::Instant;

use crate::faults::{people::FaultTicket, schedule::FaultSchedule, stage::FaultStage, vendor_faults};
use crate::output::print_line;

/// Number of failed tickets whose journals are printed.
const SHOWN: usize = 3;

/// Counters of the play.
#[derive(Default)]
pub(crate) struct PlaySummary {
    pub(crate) strikes: usize,
    /// Time from a strike to the next step, for each ticket that was in progress.
    pub(crate) recoveries: Vec<Duration>,
}

impl PlaySummary {
    /// Prints a progress line.
    pub(crate) fn print_progress(&self, start: Instant, tickets: &[FaultTicket]) {
        let done = tickets.iter().filter(|ticket| ticket.note.done.is_some()).count();
        print_line(&format!(
            "{:>5} s: {} strikes, {} tickets asked for, {done} done",
            start.elapsed().as_secs(),
            self.strikes,
            tickets.len()
        ));
    }

    /// Prints the figures and the problems.
    pub(crate) async fn print(
        &self,
        stage: &FaultStage,
        schedule: &FaultSchedule,
        tickets: &[FaultTicket],
        problems: &[TicketProblem],
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
        print_line(&format!(
            "tickets {} done {} {}",
            tickets.len(),
            done.len(),
            format_times(&done)
        ));
        print_line(&format!("strikes {}", format_counts(&strikes)));
        print_line(&format!(
            "outside {}",
            format_counts(&vendor_faults::count_faults(&stage.world))
        ));
        print_line(&format!(
            "recoveries {} {}",
            self.recoveries.len(),
            format_times(&self.recoveries)
        ));
        print_line(&format!(
            "model replies paid again {}",
            calls.saturating_sub(needed)
        ));
        let (reader, writer) = stage.world.github.rate_limit_used_by_accounts();
        print_line(&format!("github calls reader {reader} writer {writer}"));
        for ended in &stage.ended {
            print_line(&format!("ended by itself: {ended}"));
        }
        for problem in problems {
            print_line(&problem.to_string());
        }
        let mut shown: Vec<&str> = problems
            .iter()
            .filter_map(|problem| problem.ticket.as_deref())
            .collect();
        shown.dedup();
        for ticket in shown.into_iter().take(SHOWN) {
            if let Err(error) = print_journals(stage, ticket).await {
                print_line(&format!("{ticket}: its journals cannot be read: {error:#}"));
            }
        }
        print_line(&format!("losses {}", of(BrokenPromise::Lost)));
        print_line(&format!("duplicates {}", of(BrokenPromise::Doubled)));
    }
}

/// Formats the median and the maximum of durations.
fn format_times(samples: &[Duration]) -> String {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let (middle, most) = (sorted.get(sorted.len() / 2), sorted.last());
    let seconds = |time: Option<&Duration>| time.copied().unwrap_or_default().as_secs_f64();
    format!("p50 {:.1} s max {:.1} s", seconds(middle), seconds(most))
}

fn format_counts(counts: &BTreeMap<String, usize>) -> String {
    let sum: usize = counts.values().sum();
    let each: Vec<_> = counts
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    format!("{sum}: {}", each.join("; "))
}

/// Prints a ticket's journals entry by entry.
async fn print_journals(stage: &FaultStage, key: &str) -> anyhow::Result<()> {
    let queue = stage.world.queue().await?;
    let rows = queue.table::<TicketRow>(KeyValueBucket::Tickets);
    let Some((row, _)) = rows.get(&format!("jira:{key}")).await? else {
        return Ok(());
    };
    for run in &row.runs {
        print_line(&format!("{}:", run.id));
        let entries = queue.journal().read(&run.id).await?;
        let start = entries.first().map(|(_, entry)| entry.at).unwrap_or_default();
        for line in entries
            .iter()
            .filter_map(|(_, entry)| timeline::render_entry_line(entry, start))
        {
            print_line(&line);
        }
    }
    Ok(())
}

//! `journeyman watch`: works on all tickets that request it, found by polls, and prints the events.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use api::{
    Client, RunJournalEntry,
    types::{RunState, RunView, RunsQuery},
};
use clap::Args;
use domain::{
    Fact, RunId, StopReason, TextMarkup, Timestamp, Trigger, TriggerReason,
    text::{one_line, truncate_text},
};
use futures::TryStreamExt;
use ingest::{CommandRounds, DryRound, IngestMode};
use tokio_util::sync::CancellationToken;

use super::{EXIT_INTERRUPTED, find_settings_file, one_shot::OneShotServices, print_error, print_result};
use crate::{access::ApiAccess, exit_codes::derive_exit_code, timeline};

// Error of a journal that ends before its watch.
const JOURNAL_ENDED: &str = "the live journal ended";
// Longest detail of a run's end, in characters. The journal has the whole text.
const STOP_DETAIL: usize = 300;

/// Work on every ticket that requests it and take care of its pull request, by polls at an interval, without
/// webhooks
#[derive(Debug, Clone, Args)]
pub(in crate::commands) struct Arguments {
    /// The rules file of the only repository to watch [default: every repository of the settings]
    #[arg(long = "config", value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Seconds between two polls
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    interval: u32,
    /// Settings file [default: journeyman.toml, when it exists]
    #[arg(long, value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    settings: Option<PathBuf>,
    /// Folder for data
    #[arg(long, value_name = "DIR", default_value = ".journeyman")]
    data: PathBuf,
    /// Poll once, print the work that would start, and start none
    #[arg(long)]
    dry_run: bool,
    /// Poll, finish the work that is found, repeat until nothing is new, and end; with a NATS and a Redis of its own in the
    /// folder for data. What waits for checks or people continues at the next start. Exit code 1 when a run or a poll failed
    #[arg(long, conflicts_with = "dry_run")]
    once: bool,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let (interval, data) = (asked.interval, asked.data.clone());
    let alone = OneShotServices {
        rules: asked.rules,
        file: find_settings_file(asked.settings),
        data: asked.data,
        more: vec![(
            "JOURNEYMAN__INGEST__POLL_INTERVAL_S".to_owned(),
            interval.to_string(),
        )],
        extent: match (asked.dry_run, asked.once) {
            (true, _) => IngestMode::Answers,
            // The rounds of the command are the only polls, so that their end is known.
            (false, true) => IngestMode::OnRequest,
            (false, false) => IngestMode::Whole,
        },
    };
    if asked.dry_run {
        return Ok(alone
            .preview_round()
            .await?
            .map_or(EXIT_INTERRUPTED.into(), |round| print_dry_round(&round)));
    }
    if asked.once {
        let watched = alone.run_with_ingest(async |client, config, shutdown| {
            watch_rounds(&client, &config, &data, shutdown).await
        });
        return Ok(watched.await?.unwrap_or(EXIT_INTERRUPTED.into()));
    }
    let watched = alone.run(async |client, shutdown| watch_events(&client, &data, interval, shutdown).await);
    Ok(watched.await?.unwrap_or(EXIT_INTERRUPTED.into()))
}

/// Prints the triggers of a dry run, and the failed reads.
fn print_dry_round(round: &DryRound) -> ExitCode {
    for trigger in &round.triggers {
        print_result(&describe_trigger(trigger));
    }
    if round.triggers.is_empty() && round.problems.is_empty() {
        print_result("nothing would start");
    }
    for problem in &round.problems {
        print_error(&format!("journeyman: {problem}"));
    }
    derive_exit_code(round.problems.is_empty())
}

fn describe_trigger(trigger: &Trigger) -> String {
    let ticket = &trigger.ticket;
    match &trigger.reason {
        TriggerReason::JobRequested(request) => {
            let (job, repository, text) = (request.job, &request.repository, &request.text.summary);
            format!("would start {job} on {ticket} in {repository}: {text}")
        }
        TriggerReason::Skipped(reason) => format!("{ticket}: {}", reason.words(&TextMarkup::PLAIN)),
        TriggerReason::StopRequested { .. } => format!("would stop the runs of {ticket}"),
        TriggerReason::TicketLeft(departure) => {
            format!("would stop the runs of {ticket}, which was {}", departure.words())
        }
        TriggerReason::RetryRequested => format!("would continue {ticket} where it waits"),
        TriggerReason::Decided(decision) => format!("would decide about run {}", decision.run),
        TriggerReason::CostAsked { .. } => format!("would comment the cost of {ticket}"),
        TriggerReason::HelpAsked { .. } => format!("would comment the orders for {ticket}"),
        TriggerReason::PullRequest(_)
        | TriggerReason::ReviewWithdrawn { .. }
        | TriggerReason::ReportSettled(_)
        | TriggerReason::NewsArrived(_) => match trigger.reason.job() {
            Some(job) => format!("would start {job} on {ticket}"),
            None => format!("would report the news of {ticket} to its runs"),
        },
    }
}

async fn watch_events(
    client: &Client,
    data: &Path,
    interval: u32,
    shutdown: CancellationToken,
) -> anyhow::Result<ExitCode> {
    // The subscription comes before the first output, so that no later event is missed.
    let events = client.runs().events().await?;
    let _access = AccessFileGuard::at(client, data)?;
    for repository in client.installation().rules().await?.repositories {
        print_result(&format!("watching {} every {interval} s", repository.repository));
    }
    let mut events = std::pin::pin!(events);
    let mut printed = WatchedRuns::default();
    while let Some(event) = shutdown.run_until_cancelled(events.try_next()).await {
        printed.print(event?.context(JOURNAL_ENDED)?);
    }
    // Only a signal ends a watch.
    Ok(EXIT_INTERRUPTED.into())
}

/// Polls in rounds until nothing is new, and prints the events meanwhile.
async fn watch_rounds(
    client: &Client,
    config: &ingest::Config,
    data: &Path,
    shutdown: CancellationToken,
) -> anyhow::Result<ExitCode> {
    // The subscription comes before the first round, so that none of its events is missed.
    let mut events = std::pin::pin!(client.runs().events().await?);
    let _access = AccessFileGuard::at(client, data)?;
    // Runs that ended before the first round are no news.
    let earlier = list_all_runs(client, &select_ended_runs()).await?;
    let earlier: BTreeSet<String> = earlier.into_iter().map(|run| run.id).collect();
    let mut rounds = CommandRounds::connect(config).await?;
    let mut running = Box::pin(rounds.run());
    let mut printed = WatchedRuns::default();
    let problems = loop {
        tokio::select! {
            // Events come first, so that those of the last run are printed before the end.
            biased;
            event = events.try_next() => printed.print(event?.context(JOURNAL_ENDED)?),
            ended = &mut running => break ended?,
            () = shutdown.cancelled() => {
                print_error("stopped; the work carries on when journeyman starts again");
                return Ok(EXIT_INTERRUPTED.into());
            }
        }
    };
    let mut ended = list_all_runs(client, &select_ended_runs()).await?;
    ended.retain(|run| !earlier.contains(&run.id));
    let parked = RunsQuery {
        status: Some(RunState::Parked),
        ..RunsQuery::default()
    };
    let waiting = list_all_runs(client, &parked).await?;
    Ok(report_rounds(&problems, &ended, &waiting))
}

/// Selects the runs that ended otherwise than completed.
fn select_ended_runs() -> RunsQuery {
    RunsQuery {
        stop: Some(RunsQuery::FAILED.to_owned()),
        ..RunsQuery::default()
    }
}

/// Lists all runs that match a query, oldest first.
async fn list_all_runs(client: &Client, query: &RunsQuery) -> Result<Vec<RunView>, api::Error> {
    let mut query = RunsQuery {
        limit: Some(RunsQuery::MOST),
        ..query.clone()
    };
    let mut newest_first = Vec::new();
    loop {
        let page = client.runs().list(&query).await?;
        let is_last = page.len() < RunsQuery::MOST;
        query.before = page.last().map(|run| run.id.clone());
        newest_first.extend(page);
        if is_last {
            newest_first.reverse();
            return Ok(newest_first);
        }
    }
}

/// Prints the end of the rounds: runs that wait, failed reads, and runs that were not completed.
fn report_rounds(problems: &[String], ended: &[RunView], waiting: &[RunView]) -> ExitCode {
    let mut conditions = BTreeSet::new();
    for run in waiting {
        if let Some(condition) = run.waits_for.as_deref() {
            print_result(&format!("{} waits for: {condition}", run.id));
            conditions.insert(condition);
        }
    }
    for problem in problems {
        print_error(&format!("journeyman: {problem}"));
    }
    let mut has_failure = !problems.is_empty();
    for run in ended {
        if let Some(reason) = &run.stop {
            print_error(&format!(
                "journeyman: {} ended: {}",
                run.id,
                describe_stop(reason)
            ));
            // A person decided the other ends, or there was nothing to do.
            has_failure |= reason.is_failure();
        }
    }
    if has_failure {
        return ExitCode::FAILURE;
    }
    print_result(&describe_rest(&conditions));
    ExitCode::SUCCESS
}

/// Describes the reason for the end of a run in one line: `turn limit, 150 turns`.
fn describe_stop(reason: &StopReason) -> String {
    match reason.detail() {
        Some(detail) => format!(
            "{}, {}",
            reason.words(),
            truncate_text(&one_line(&detail), STOP_DETAIL)
        ),
        None => reason.words(),
    }
}

/// Last line of the command: the conditions that runs wait for, if any.
fn describe_rest(conditions: &BTreeSet<&str>) -> String {
    if conditions.is_empty() {
        return "nothing is left to do".to_owned();
    }
    let conditions: Vec<_> = conditions.iter().copied().collect();
    format!("the rest waits for: {}", conditions.join(", "))
}

/// Starts of the runs whose events a watch prints.
#[derive(Default)]
struct WatchedRuns(BTreeMap<RunId, Timestamp>);

impl WatchedRuns {
    /// Prints one event, with the time since the start of its run.
    fn print(&mut self, RunJournalEntry { run, entry }: RunJournalEntry) {
        let start = *self.0.entry(run.clone()).or_insert(entry.at);
        if let Some(line) = timeline::render_entry_line(&entry, start) {
            print_result(&format!("{run} {line}"));
        }
        // A watch has no end, so finished runs are removed.
        if matches!(entry.fact, Fact::RunFinished { .. }) {
            self.0.remove(&run);
        }
    }
}

/// Access file for other commands, removed on drop.
struct AccessFileGuard(PathBuf);

impl AccessFileGuard {
    fn at(client: &Client, data: &Path) -> anyhow::Result<Self> {
        ApiAccess::of(client).save(data)?;
        // The guard exists only after the file does, so that a failed write leaves nothing to remove.
        Ok(Self(data.to_owned()))
    }
}

impl Drop for AccessFileGuard {
    fn drop(&mut self) {
        ApiAccess::forget(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use domain::GiveUp;

    use super::*;

    #[test]
    fn stop_reason_fits_one_line() {
        let given_up = |evidence: String| StopReason::GivenUp {
            kind: GiveUp::AlreadyDone,
            evidence,
        };
        assert_eq!(
            describe_stop(&given_up("It is\nthere.".to_owned())),
            "given up, already done: It is there."
        );
        let long = describe_stop(&given_up("word\n".repeat(1_000)));
        assert!(!long.contains('\n') && long.chars().count() < 350, "{long}");
        assert_eq!(describe_stop(&StopReason::NoPlan), "no plan");
    }

    #[test]
    fn last_line_names_each_wait_once() {
        assert_eq!(describe_rest(&BTreeSet::new()), "nothing is left to do");
        assert_eq!(
            describe_rest(&BTreeSet::from(["retry", "decision", "retry"])),
            "the rest waits for: decision, retry"
        );
    }
}

//! `journeyman watch`: works on all tickets that request it, found by polls, and prints the events.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
};

use api::{Client, RunJournalEntry};
use clap::Args;
use domain::{Fact, RunId, TextMarkup, Timestamp, Trigger, TriggerReason};
use futures::TryStreamExt;
use ingest::{DryRound, IngestMode};
use tokio_util::sync::CancellationToken;

use super::{EXIT_INTERRUPTED, find_settings_file, one_shot::OneShotServices, print_error, print_result};
use crate::{access::ApiAccess, timeline};

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
        extent: match asked.dry_run {
            true => IngestMode::Answers,
            false => IngestMode::Whole,
        },
    };
    if asked.dry_run {
        return Ok(alone
            .preview_round()
            .await?
            .map_or(EXIT_INTERRUPTED.into(), |round| print_dry_round(&round)));
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
    match round.problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
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
    let events = client.events().await?;
    let _access = AccessFileGuard::at(client, data)?;
    for repository in client.rules().await?.repositories {
        print_result(&format!("watching {} every {interval} s", repository.repository));
    }
    let mut events = std::pin::pin!(events);
    let mut starts: BTreeMap<RunId, Timestamp> = BTreeMap::new();
    while let Some(event) = shutdown.run_until_cancelled(events.try_next()).await {
        let Some(RunJournalEntry { run, entry }) = event? else {
            anyhow::bail!("the live journal ended");
        };
        let start = *starts.entry(run.clone()).or_insert(entry.at);
        if let Some(line) = timeline::render_entry_line(&entry, start) {
            print_result(&format!("{run} {line}"));
        }
        // A watch has no end, so finished runs are removed.
        if matches!(entry.fact, Fact::RunFinished { .. }) {
            starts.remove(&run);
        }
    }
    // Only a signal ends a watch.
    Ok(EXIT_INTERRUPTED.into())
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

//! `journeyman watch`: works on all tickets that request it, found by polls, and prints the events.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
};

use api::{Client, OfRun};
use clap::Args;
use domain::{Fact, Marks, Reason, RunId, Timestamp, Trigger};
use futures::TryStreamExt;
use ingest::{Extent, Look};
use tokio_util::sync::CancellationToken;

use super::{INTERRUPTED, alone::Alone, say, say_error, settings_file};
use crate::{access::Access, timeline};

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

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    let (interval, data) = (asked.interval, asked.data.clone());
    let alone = Alone {
        rules: asked.rules,
        file: settings_file(asked.settings),
        data: asked.data,
        more: vec![(
            "JOURNEYMAN__INGEST__POLL_INTERVAL_S".to_owned(),
            interval.to_string(),
        )],
        extent: match asked.dry_run {
            true => Extent::Answers,
            false => Extent::Whole,
        },
    };
    if asked.dry_run {
        return Ok(alone.look().await?.map_or(INTERRUPTED.into(), |look| tell(&look)));
    }
    let watched = alone.run(async |client, shutdown| watch(&client, &data, interval, shutdown).await);
    Ok(watched.await?.unwrap_or(INTERRUPTED.into()))
}

/// Prints the triggers of a dry run, and the failed reads.
fn tell(look: &Look) -> ExitCode {
    for trigger in &look.triggers {
        say(&would(trigger));
    }
    if look.triggers.is_empty() && look.problems.is_empty() {
        say("nothing would be taken up");
    }
    for problem in &look.problems {
        say_error(&format!("journeyman: {problem}"));
    }
    match look.problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn would(trigger: &Trigger) -> String {
    let ticket = &trigger.ticket;
    match &trigger.reason {
        Reason::JobRequested(request) => {
            let (job, repository, text) = (request.job, &request.repository, &request.text.summary);
            format!("would start {job} on {ticket} in {repository}: {text}")
        }
        Reason::Skipped(reason) => format!("{ticket}: {}", reason.words(&Marks::PLAIN)),
        Reason::StopRequested { .. } => format!("would stop the runs of {ticket}"),
        Reason::RetryRequested => format!("would go on with {ticket} where it waits"),
        Reason::Decided(decision) => format!("would take a decision about run {}", decision.run),
        Reason::CostAsked { .. } => format!("would tell what {ticket} cost"),
        reason => match reason.job() {
            Some(job) => format!("would start {job} on {ticket}"),
            None => format!("would tell the runs of {ticket} what is new"),
        },
    }
}

async fn watch(
    client: &Client,
    data: &Path,
    interval: u32,
    shutdown: CancellationToken,
) -> anyhow::Result<ExitCode> {
    // The subscription comes before the first output, so that no later event is missed.
    let events = client.events().await?;
    let _access = Left::at(client, data)?;
    for repository in client.rules().await?.repositories {
        say(&format!("watching {} every {interval} s", repository.repository));
    }
    let mut events = std::pin::pin!(events);
    let mut starts: BTreeMap<RunId, Timestamp> = BTreeMap::new();
    while let Some(event) = shutdown.run_until_cancelled(events.try_next()).await {
        let Some(OfRun { run, entry }) = event? else {
            anyhow::bail!("the live journal ended");
        };
        let start = *starts.entry(run.clone()).or_insert(entry.at);
        if let Some(line) = timeline::line(&entry, start) {
            say(&format!("{run} {line}"));
        }
        // A watch has no end, so finished runs are removed.
        if matches!(entry.fact, Fact::RunFinished { .. }) {
            starts.remove(&run);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Access file for other commands, removed on drop.
struct Left(PathBuf);

impl Left {
    fn at(client: &Client, data: &Path) -> anyhow::Result<Self> {
        Access::of(client).save(data)?;
        Ok(Self(data.to_owned()))
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        Access::forget(&self.0);
    }
}

//! Benchmark of Journeyman's cost outside model and tools. It prints one line per figure, with a floor from
//! the same run.

mod crowd;
mod durable;
mod folder;
mod hooks;
mod measure;
mod operation;
mod polls;
mod processes;
mod retrieval;
mod setup;
mod tickets;
mod tokens;
mod tools;
mod whole;
mod workspaces;

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use e2e::{Mode, Options, World};
use tokio::time::timeout;

use crate::bench::{measure::say, processes::Services, tools::Bench};

/// Time limit of the whole bench, including shutdown.
const LIMIT: Duration = Duration::from_secs(600);
/// Number of tickets in progress at once.
const AT_ONCE: usize = 20;

/// Prints one line for each figure: `bench NAME VALUE UNIT`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Parts to run; all parts if absent
    #[arg(value_enum)]
    parts: Vec<Part>,
}

/// Part of the bench with separate services.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Tickets, webhooks, tools and workspaces
    Services,
    /// GitHub calls for 500 open pull requests
    Polls,
    /// Journal appends, crash recovery, and many runs on one planner
    Durable,
    /// Index of 50,000 files, and searches in it
    Retrieval,
    /// Tokens that caching and clearing save in a long conversation
    Tokens,
    /// Start of `journeyman try`
    Folder,
    /// Setup from an empty folder to the first pull request
    Setup,
    /// Calls of a ticket's longest path, time to the first reaction, rate of effects, conversion of Jira
    /// texts
    Whole,
    /// Start of services, and scrapes of metrics
    Operation,
    /// Pages over 10,000 runs, and 500 viewers of one run
    Crowd,
}

pub(crate) async fn run(Arguments { parts }: Arguments) -> ExitCode {
    let parts = if parts.is_empty() {
        Part::value_variants().to_vec()
    } else {
        parts
    };
    let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    let measured = tokio::select! {
        measured = timeout(LIMIT, Box::pin(measure(&parts))) => measured.context("the bench took too long"),
        // Dropping the services kills their processes.
        () = interrupted => Err(anyhow!("interrupted")),
    };
    match measured {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) | Err(error) => {
            say(&format!("bench failed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn measure(parts: &[Part]) -> anyhow::Result<()> {
    for part in parts {
        match part {
            Part::Services => Box::pin(services()).await?,
            Part::Polls => Box::pin(polls::calls()).await?,
            Part::Durable => {
                durable::appends().await?;
                Box::pin(durable::default_recovery()).await?;
                Box::pin(durable::crashes_and_crowds()).await?;
            }
            Part::Retrieval => Box::pin(retrieval::all()).await?,
            Part::Tokens => tokens::all().await?,
            Part::Folder => folder::first_call().await?,
            Part::Setup => Box::pin(setup::first_ticket()).await?,
            Part::Whole => Box::pin(whole::all()).await?,
            Part::Operation => Box::pin(operation::all()).await?,
            Part::Crowd => Box::pin(crowd::all()).await?,
        }
    }
    Ok(())
}

async fn services() -> anyhow::Result<()> {
    let keys = Arc::new(Bench::keys()?);
    let (_, public_key) = keys.public_key();
    let options = Options {
        mode: Mode::Processes,
        settings: vec![
            ("EXECUTOR__SLOTS", workspaces::SLOTS.to_string()),
            ("EXECUTOR__GRANT_KEYS__BENCH", public_key.clone()),
            ("REPORTER__GRANT_KEYS__BENCH", public_key),
        ],
        ..Options::default()
    };
    let mut world = Box::pin(World::start(options)).await?;
    let services = Services::of(&mut world)?;
    services.idle_memory().await?;
    tickets::first_call(&world).await?;
    let command = tools::round_trips(&world, &keys).await?;
    tickets::turns(&world, command).await?;
    tickets::pull_requests(&world).await?;
    tickets::at_once(&world, &services, AT_ONCE).await?;
    hooks::rate(&world).await?;
    Box::pin(workspaces::all(&world, &services, keys)).await?;
    world.stop().await
}

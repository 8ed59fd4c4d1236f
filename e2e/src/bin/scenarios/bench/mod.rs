//! Benchmark of Journeyman's cost outside model and tools. It prints one line per figure, with a floor from
//! the same run.

mod durability;
mod folder;
mod hooks;
mod longest_path;
mod measure;
mod operation;
mod polls;
mod processes;
mod readers;
mod retrieval;
mod setup;
mod tickets;
mod tokens;
mod tools;
mod workspaces;

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use e2e::{Options, ServiceMode, TestWorld};
use tokio::time::timeout;

use crate::bench::{processes::ServiceProcesses, tools::BenchCaller};

/// Time limit of the whole bench, including shutdown.
const LIMIT: Duration = Duration::from_secs(600);
/// Number of tickets in progress at once.
const AT_ONCE: usize = 20;

/// Prints one line for each figure: `bench NAME VALUE UNIT`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Parts to run; all parts if absent
    #[arg(value_enum)]
    parts: Vec<BenchPart>,
}

/// Part of the bench with separate services.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BenchPart {
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

/// Plays the scenario.
pub(crate) async fn run_scenario(Arguments { parts }: Arguments) -> anyhow::Result<ExitCode> {
    let parts = if parts.is_empty() {
        BenchPart::value_variants().to_vec()
    } else {
        parts
    };
    let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    let measured = tokio::select! {
        measured = timeout(LIMIT, Box::pin(measure_parts(&parts))) => measured.context("the bench took too long"),
        // Dropping the services kills their processes.
        () = interrupted => Err(anyhow!("interrupted")),
    };
    measured?.map(|()| ExitCode::SUCCESS)
}

async fn measure_parts(parts: &[BenchPart]) -> anyhow::Result<()> {
    for part in parts {
        match part {
            BenchPart::Services => Box::pin(measure_services()).await?,
            BenchPart::Polls => Box::pin(polls::measure_poll_calls()).await?,
            BenchPart::Durable => {
                durability::measure_appends().await?;
                Box::pin(durability::default_recovery()).await?;
                Box::pin(durability::crashes_and_crowds()).await?;
            }
            BenchPart::Retrieval => Box::pin(retrieval::measure_retrieval()).await?,
            BenchPart::Tokens => tokens::measure_tokens().await?,
            BenchPart::Folder => folder::first_call().await?,
            BenchPart::Setup => Box::pin(setup::first_ticket()).await?,
            BenchPart::Whole => Box::pin(longest_path::measure_longest_path()).await?,
            BenchPart::Operation => Box::pin(operation::measure_operation()).await?,
            BenchPart::Crowd => Box::pin(readers::measure_readers()).await?,
        }
    }
    Ok(())
}

async fn measure_services() -> anyhow::Result<()> {
    let keys = Arc::new(BenchCaller::keys()?);
    let (_, public_key) = keys.public_key();
    let options = Options {
        mode: ServiceMode::Processes,
        settings: vec![
            ("EXECUTOR__SLOTS", workspaces::SLOTS.to_string()),
            ("EXECUTOR__GRANT_KEYS__BENCH", public_key.clone()),
            ("REPORTER__GRANT_KEYS__BENCH", public_key),
        ],
        ..Options::default()
    };
    let mut world = Box::pin(TestWorld::start(options)).await?;
    let services = ServiceProcesses::of(&mut world)?;
    services.idle_memory().await?;
    tickets::first_call(&world).await?;
    let command = tools::round_trips(&world, &keys).await?;
    tickets::measure_turns(&world, command).await?;
    tickets::pull_requests(&world).await?;
    tickets::at_once(&world, &services, AT_ONCE).await?;
    hooks::measure_webhooks(&world).await?;
    Box::pin(workspaces::measure_workspaces(&world, &services, keys)).await?;
    world.stop().await
}

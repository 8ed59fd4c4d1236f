//! Benchmark of Journeyman's cost outside model and tools. It prints one line per figure, with a floor from
//! the same run.

mod cpu;
mod durability;
mod folder;
mod hooks;
mod longest_path;
mod machine;
mod measure;
mod operation;
mod pages;
mod polls;
mod processes;
mod proof;
mod python;
mod readers;
mod references;
mod retrieval;
mod setup;
mod throughput;
mod tickets;
mod tokens;
mod tools;
mod waiting;
mod workspaces;

use std::{path::PathBuf, pin::pin, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use e2e::TestWorld;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::timeout,
};

pub(crate) use crate::bench::tickets::COMMAND;
use crate::bench::{machine::MachineDescription, processes::ServiceProcesses, tools::BenchCaller};

/// Time limits of the whole bench, including shutdown: without and with the long measurements.
const LIMIT: Duration = Duration::from_secs(1800);
const LONG_LIMIT: Duration = Duration::from_secs(3600);

/// Prints one line for each figure: `bench NAME VALUE UNIT`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Parts to run; all parts if absent
    #[arg(value_enum)]
    parts: Vec<BenchPart>,
    /// Also measure what takes minutes: the proof of a suite of a minute
    #[arg(long)]
    long: bool,
    /// Replace the figures in this folder of pages, the repository's docs, by the measured ones
    #[arg(long, value_name = "FOLDER")]
    write_docs: Option<PathBuf>,
}

/// Part of the bench with separate services.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BenchPart {
    /// Single tickets, webhooks, tools and workspaces
    Services,
    /// Many tickets at once, with and without checks
    Tickets,
    /// Tickets without checks, and the proof of suites of several durations
    Proof,
    /// Workspaces of 20,000 and 100,000 files
    Large,
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
pub(crate) async fn run_scenario(arguments: Arguments) -> anyhow::Result<ExitCode> {
    python::use_system_python()?;
    let parts = if arguments.parts.is_empty() {
        BenchPart::value_variants().to_vec()
    } else {
        arguments.parts
    };
    // Described before the bench loads the machine.
    let machine = MachineDescription::read();
    let limit = if arguments.long { LONG_LIMIT } else { LIMIT };
    let mut measured = pin!(timeout(limit, Box::pin(measure_parts(&parts, arguments.long))));
    let (mut interrupt, mut end) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        measured = &mut measured => measured.context("the bench took too long")??,
        // The measurement stays alive until the services have drained; dropping it kills their processes.
        _ = interrupt.recv() => return Err(stop_services("SIGINT").await),
        _ = end.recv() => return Err(stop_services("SIGTERM").await),
    }
    if let Some(folder) = arguments.write_docs {
        pages::write_pages(&folder, &machine, &measure::list_printed_figures())?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn stop_services(signal: &str) -> anyhow::Error {
    processes::drain_children().await;
    anyhow!("interrupted by {signal}")
}

async fn measure_parts(parts: &[BenchPart], is_long: bool) -> anyhow::Result<()> {
    for part in parts {
        match part {
            BenchPart::Services => Box::pin(measure_services()).await?,
            BenchPart::Tickets => Box::pin(throughput::measure_throughput()).await?,
            BenchPart::Proof => Box::pin(proof::measure_proof(is_long)).await?,
            BenchPart::Large => Box::pin(workspaces::measure_large_workspaces()).await?,
            BenchPart::Polls => {
                Box::pin(polls::measure_assessment_calls()).await?;
                Box::pin(polls::measure_poll_calls()).await?;
            }
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
    let options = workspaces::build_bench_options(&keys, workspaces::SLOTS);
    let mut world = Box::pin(TestWorld::start(options)).await?;
    // The model keeps its requests: the floor of a turn sends them again.
    world.github.set_recording(false);
    world.jira.set_recording(false);
    let services = ServiceProcesses::of(&mut world)?;
    services.idle_memory().await?;
    tickets::first_call(&world).await?;
    let command = tools::round_trips(&world, &keys).await?;
    tickets::measure_turns(&world, command).await?;
    world.model.set_recording(false);
    tickets::pull_requests(&world, "ticket_to_pull_request").await?;
    tickets::floor_tests().await?;
    hooks::measure_webhooks(&world).await?;
    Box::pin(workspaces::measure_workspaces(&world, &services, keys)).await?;
    world.stop().await
}

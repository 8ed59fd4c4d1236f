//! Load of many repositories on GitHub, Jira, NATS and Redis: a day on a virtual clock.
//!
//! It uses ingest's plan of polls, the planners' queue for slots, and the cost of a ticket that it measures
//! in the same run.

mod day;
mod measurement;
mod polls;
mod relay;
mod shares;
mod table;

use std::{process::ExitCode, time::Duration};

use anyhow::Context as _;
use clap::Args;
use shares::LoadShares;

/// Time limit of the measurement; the simulation follows.
const LIMIT: Duration = Duration::from_secs(60);

/// Prints one line for each kind of call or message: `scale NAME MEAN BUSIEST a_minute`.
#[derive(Args)]
pub(crate) struct ScaleArguments {
    /// Number of repositories with rules
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repositories: u32,
    /// Number of open pull requests of Journeyman
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pull_requests: u64,
    /// Number of executors with one slot each
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    executors: u32,
    /// Seconds between two polls [default: that of the settings]
    #[arg(long, default_value_t = ingest::Settings::default().poll_interval_s, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    poll_interval_s: u64,
    /// Seed of the day; an equal seed repeats it
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

/// Plays the scenario.
pub(crate) async fn run_scenario(scale: ScaleArguments) -> anyhow::Result<ExitCode> {
    let measured = tokio::select! {
        measured = tokio::time::timeout(LIMIT, Box::pin(measurement::measure_load())) => measured,
        // Dropping the services stops them.
        _ = tokio::signal::ctrl_c() => return Ok(ExitCode::from(130)),
    };
    let measured = measured.context("measuring a ticket took longer than a minute")??;
    let shares = LoadShares::of(&measured);
    table::print_table(&scale, &measured, &day::simulate_day(&scale, &shares));
    Ok(ExitCode::SUCCESS)
}

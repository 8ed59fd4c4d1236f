//! Fault test: many concurrent tickets while services, servers and external services fail by a schedule that
//! the seed determines. It counts lost and duplicate work.

mod check;
mod people;
mod play;
mod schedule;
mod stage;
mod summary;
mod vendor_faults;

use std::process::ExitCode;

use crate::output::{exit_code, print_line};
use clap::Args;
use schedule::FaultSchedule;
use tokio::signal::unix::{SignalKind, signal};

/// Plays tickets to their end under faults.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Number of tickets to play
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=5000))]
    tickets: u32,
    /// Seed of an earlier schedule to repeat
    #[arg(long)]
    seed: Option<u64>,
    /// Print the schedule and exit
    #[arg(long)]
    plan: bool,
}

/// Plays the scenario.
pub(crate) async fn run_scenario(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(0..1_000_000));
    let schedule = FaultSchedule::new(seed, arguments.tickets);
    if arguments.plan {
        print_line(&schedule.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    perform_schedule(schedule).await
}

async fn perform_schedule(schedule: FaultSchedule) -> anyhow::Result<ExitCode> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        played = Box::pin(play::play_schedule(schedule)) => played.map(exit_code),
        _ = interrupt.recv() => Ok(ExitCode::from(130)),
        _ = terminate.recv() => Ok(ExitCode::from(143)),
    }
}

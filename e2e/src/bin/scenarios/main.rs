//! Scenarios over the whole system: an outside of stand-ins, the real services, people, and checks of the outcome. One binary, because
//! each link of the whole system costs half a minute.

mod bench;
mod cluster_test;
mod console_check;
mod crash_matrix;
mod demo;
mod faults;
mod replay;
mod scale_sim;
mod skew;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Plays scenarios over the whole system.
#[derive(Parser)]
#[command(name = "scenarios", version)]
struct Arguments {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Subcommand)]
enum Scenario {
    Bench(bench::Arguments),
    ClusterTest(cluster_test::Arguments),
    ConsoleCheck(console_check::Arguments),
    CrashMatrix(crash_matrix::Arguments),
    Demo(demo::Arguments),
    Faults(faults::Arguments),
    Replay(replay::Arguments),
    ScaleSim(scale_sim::ScaleArguments),
    Skew(skew::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    bootstrap::install_tls_provider();
    match Arguments::parse().scenario {
        Scenario::Bench(arguments) => Box::pin(bench::run(arguments)).await,
        Scenario::ClusterTest(arguments) => Box::pin(cluster_test::run(arguments)).await,
        Scenario::ConsoleCheck(arguments) => Box::pin(console_check::run(arguments)).await,
        Scenario::CrashMatrix(arguments) => Box::pin(crash_matrix::run(arguments)).await,
        Scenario::Demo(arguments) => Box::pin(demo::run(arguments)).await,
        Scenario::Faults(arguments) => Box::pin(faults::run(arguments)).await,
        Scenario::Replay(arguments) => Box::pin(replay::run_replay(arguments)).await,
        Scenario::ScaleSim(arguments) => Box::pin(scale_sim::run(arguments)).await,
        Scenario::Skew(arguments) => Box::pin(skew::run(arguments)).await,
    }
}

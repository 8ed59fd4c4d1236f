//! Scenarios over the whole system: an outside of stand-ins, the real services, people, and checks of the outcome. One binary, because
//! each link of the whole system costs half a minute.

mod bench;
mod cluster_test;
mod console_check;
mod crash_matrix;
mod demo;
mod faults;
mod output;
mod peer_model;
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
    scenario: ScenarioCommand,
}

#[derive(Subcommand)]
enum ScenarioCommand {
    Bench(bench::Arguments),
    ClusterTest(cluster_test::Arguments),
    ConsoleCheck(console_check::Arguments),
    CrashMatrix(crash_matrix::Arguments),
    Demo(journeyman::demo::DemoArguments),
    Faults(faults::Arguments),
    PeerModel(peer_model::Arguments),
    Replay(replay::Arguments),
    ScaleSim(scale_sim::ScaleArguments),
    Skew(skew::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    bootstrap::install_tls_provider();
    let (name, played) = match Arguments::parse().scenario {
        ScenarioCommand::Bench(arguments) => ("bench", Box::pin(bench::run_scenario(arguments)).await),
        ScenarioCommand::ClusterTest(arguments) => (
            "cluster-test",
            Box::pin(cluster_test::run_scenario(arguments)).await,
        ),
        ScenarioCommand::ConsoleCheck(arguments) => (
            "console-check",
            Box::pin(console_check::run_scenario(arguments)).await,
        ),
        ScenarioCommand::CrashMatrix(arguments) => (
            "crash-matrix",
            Box::pin(crash_matrix::run_scenario(arguments)).await,
        ),
        ScenarioCommand::Demo(arguments) => ("demo", Box::pin(demo::run_scenario(arguments)).await),
        ScenarioCommand::Faults(arguments) => ("faults", Box::pin(faults::run_scenario(arguments)).await),
        ScenarioCommand::PeerModel(arguments) => ("peer-model", peer_model::run_scenario(arguments).await),
        ScenarioCommand::Replay(arguments) => ("replay", Box::pin(replay::run_scenario(arguments)).await),
        ScenarioCommand::ScaleSim(arguments) => {
            ("scale-sim", Box::pin(scale_sim::run_scenario(arguments)).await)
        }
        ScenarioCommand::Skew(arguments) => ("skew", Box::pin(skew::run_scenario(arguments)).await),
    };
    played.unwrap_or_else(|error| {
        let line = format!("{name} failed: {error:#}");
        match name {
            // Programs read standard output of these two line by line.
            "crash-matrix" | "replay" => output::print_error(&line),
            _ => output::print_line(&line),
        }
        ExitCode::FAILURE
    })
}

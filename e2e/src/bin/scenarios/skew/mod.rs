//! Version skew: the previous release and this one share the queue while tickets go from a request in Jira to
//! the merge.

mod cases;
mod play;

use std::{path::PathBuf, process::ExitCode};

use crate::output::exit_code;
use clap::Args;
use e2e::PreviousRelease;

/// Plays tickets with services of two releases and prints a line for each case: `skew case=NAME tickets=N outcome=OUTCOME ms=N`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Folder of the previous release's binaries
    #[arg(long, value_name = "FOLDER")]
    previous: PathBuf,
    /// The previous release's journeyman.example.toml. Settings that it does not name are not passed to that
    /// release
    #[arg(long, value_name = "FILE")]
    example: PathBuf,
    /// Folder for a backup of the records that the previous release stores for whole tickets; no case is
    /// played
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Cases to play; all if absent
    #[arg(value_parser = cases::NAMES)]
    cases: Vec<String>,
}

/// Plays the scenario.
pub(crate) async fn run_scenario(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    tokio::select! {
        outcome = Box::pin(perform_cases(arguments)) => outcome.map(exit_code),
        // Dropping the services kills their processes.
        () = interrupted => Ok(ExitCode::from(130)),
    }
}

/// Plays the cases. Returns true if all succeed.
async fn perform_cases(arguments: Arguments) -> anyhow::Result<bool> {
    let previous = PreviousRelease::read(arguments.previous, &arguments.example)?;
    if let Some(folder) = arguments.keep {
        return play::keep_backup(&previous, &folder).await.map(|()| true);
    }
    let mut all_well = true;
    for case in cases::CASES {
        if arguments.cases.is_empty() || arguments.cases.iter().any(|name| name == case.name) {
            all_well &= play::play_case(case, &previous).await;
        }
    }
    Ok(all_well)
}

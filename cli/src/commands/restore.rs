//! `journeyman restore`: loads a backup into an empty NATS.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;

use super::{
    backup::{NatsArguments, print_stream_line},
    print_result,
};

/// Load a backup into a NATS without streams of Journeyman, while no service runs
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    at: NatsArguments,
    /// The folder that `journeyman backup` created
    folder: PathBuf,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let queue = asked.at.connect().await?;
    queue.restore(&asked.folder, print_stream_line).await?;
    print_result(&format!("restored {}", asked.folder.display()));
    Ok(ExitCode::SUCCESS)
}

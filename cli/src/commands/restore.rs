//! `journeyman restore`: loads a backup into an empty NATS.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;

use super::{
    backup::{AtNats, tell},
    say,
};

/// Load a backup into a NATS without streams of Journeyman, while no service runs
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    at: AtNats,
    /// The folder that `journeyman backup` created
    folder: PathBuf,
}

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    let queue = asked.at.connect().await?;
    queue.restore(&asked.folder, tell).await?;
    say(&format!("restored {}", asked.folder.display()));
    Ok(ExitCode::SUCCESS)
}

//! `journeyman backup`: copies all data in NATS.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use queue::{Kept, Queue, Role};
use serde::Deserialize;

use super::{say, settings_file};

/// Copy all data in NATS into a new folder; services may continue meanwhile
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    at: AtNats,
    /// The folder to create
    folder: PathBuf,
}

/// Location of NATS.
#[derive(Debug, Args)]
pub(super) struct AtNats {
    /// Settings file, for its section `nats` [default: journeyman.toml, when it exists]
    #[arg(long = "config", value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    settings: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Section {
    nats: queue::Settings,
}

impl AtNats {
    /// Connects as operator. A NATS with users requires the key of the user `backup`.
    pub(super) async fn connect(&self) -> anyhow::Result<Queue> {
        let file = settings_file(self.settings.clone());
        let section: Section = bootstrap::settings::load(file.as_deref(), std::env::vars())?;
        Ok(Queue::connect(&section.nats, Role::Backup.name()).await?)
    }
}

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    let queue = asked.at.connect().await?;
    queue.back_up(&asked.folder, tell).await?;
    say(&format!("backup {}", asked.folder.display()));
    Ok(ExitCode::SUCCESS)
}

/// Prints one line per stream.
pub(super) fn tell(kept: &Kept) {
    let Kept {
        stream,
        messages,
        bytes,
    } = kept;
    say(&format!("{stream:<18} {messages:>10} messages {bytes:>12} bytes"));
}

//! Copies of all data in NATS: `journeyman backup` and `journeyman restore`.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use queue::{NatsRole, Queue, StreamTransfer};
use serde::Deserialize;

use super::{find_settings_file, print_result};

/// Copy all data in NATS into a new folder; services may continue meanwhile
#[derive(Debug, Args)]
pub(super) struct BackupArguments {
    #[command(flatten)]
    at: NatsArguments,
    /// The folder to create
    folder: PathBuf,
}

/// Load a backup into a NATS without streams of Journeyman, while no service runs
#[derive(Debug, Args)]
pub(super) struct RestoreArguments {
    #[command(flatten)]
    at: NatsArguments,
    /// The folder that `journeyman backup` created
    folder: PathBuf,
}

/// Location of NATS.
#[derive(Debug, Args)]
struct NatsArguments {
    /// Settings file, for its section `nats` [default: journeyman.toml, when it exists]
    #[arg(long = "config", value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    settings: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NatsSection {
    nats: queue::Settings,
}

impl NatsArguments {
    /// Connects as operator. A NATS with users requires the key of the user `backup`.
    async fn connect(&self) -> anyhow::Result<Queue> {
        // Only the section `nats` is read: an operator who makes backups needs no other setting.
        let file = find_settings_file(self.settings.clone());
        let section: NatsSection = bootstrap::settings::load_process_settings(file.as_deref())?;
        Ok(Queue::connect(&section.nats, NatsRole::Backup.name()).await?)
    }
}

pub(super) async fn run_backup(asked: BackupArguments) -> anyhow::Result<ExitCode> {
    let queue = asked.at.connect().await?;
    queue.back_up(&asked.folder, print_stream_line).await?;
    print_result(&format!("backup {}", asked.folder.display()));
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn run_restore(asked: RestoreArguments) -> anyhow::Result<ExitCode> {
    let queue = asked.at.connect().await?;
    queue.restore(&asked.folder, print_stream_line).await?;
    print_result(&format!("restored {}", asked.folder.display()));
    Ok(ExitCode::SUCCESS)
}

/// Prints one line per stream.
fn print_stream_line(kept: &StreamTransfer) {
    let StreamTransfer {
        stream,
        messages,
        bytes,
    } = kept;
    print_result(&format!("{stream:<18} {messages:>10} messages {bytes:>12} bytes"));
}

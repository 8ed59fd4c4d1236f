//! `journeyman try`: work on a text in a local folder.

use std::process::ExitCode;

use clap::Args;

use super::folder::{self, parse_ticket_text};

/// Work on a text in a local git folder: needs a model's key, and neither Jira nor GitHub
#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// The task: one line, and more lines with details
    text: String,
    #[command(flatten)]
    asked: folder::InFolder,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    folder::work_in_folder(parse_ticket_text(&asked.text)?, asked.asked).await
}

//! Changes through the API, with a dry run.

use std::process::ExitCode;

use api::{Act, Client};
use clap::Args;

use super::say;

/// Dry-run option of commands that change something.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct DryRun {
    /// Print what would happen, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// Performs the change and prints `done`, or prints the effects of a dry run.
pub(super) async fn perform(
    client: &Client,
    act: Act<'_>,
    DryRun { dry_run }: DryRun,
    done: &str,
) -> anyhow::Result<ExitCode> {
    if dry_run {
        tell(&client.would(act).await?);
    } else {
        client.act(act).await?;
        say(done);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the effects of a dry run.
pub(super) fn tell(would: &[String]) {
    if would.is_empty() {
        say("nothing would change");
    }
    would.iter().for_each(|line| say(&format!("would {line}")));
}

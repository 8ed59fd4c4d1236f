//! Changes through the API, with a dry run.

use std::process::ExitCode;

use api::{ApiAction, Client};
use clap::Args;

use super::print_result;

/// Dry-run option of commands that change something.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct DryRun {
    /// Print what would happen, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// Performs the change and prints `done`, or prints the effects of a dry run.
pub(super) async fn perform_act(
    client: &Client,
    act: ApiAction<'_>,
    DryRun { dry_run }: DryRun,
    done: &str,
) -> anyhow::Result<ExitCode> {
    if dry_run {
        print_effects(&client.would(act).await?);
    } else {
        client.act(act).await?;
        print_result(done);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the effects of a dry run.
pub(super) fn print_effects(would: &[String]) {
    if would.is_empty() {
        print_result("nothing would change");
    }
    would
        .iter()
        .for_each(|line| print_result(&format!("would {line}")));
}

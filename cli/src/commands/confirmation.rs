//! Changes through the API: a dry run, and the confirmation of irreversible ones.

use std::process::ExitCode;

use api::{ApiAction, Client};
use clap::Args;

use super::{EXIT_SETTINGS, print_error, print_result, prompt};

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

/// Confirmation option of destructive commands.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct ConfirmationOption {
    /// Do not ask first; required without a terminal
    #[arg(long, short)]
    yes: bool,
}

impl ConfirmationOption {
    /// Exit code when confirmation is missing and there is no terminal for the question.
    pub(super) fn refused(self, DryRun { dry_run }: DryRun) -> Option<ExitCode> {
        if self.yes || dry_run || prompt::can_ask() {
            return None;
        }
        print_error(
            "journeyman: --yes is missing, and there is no terminal to ask at; --dry-run shows what would be lost",
        );
        Some(ExitCode::from(EXIT_SETTINGS))
    }

    /// Performs the change after the user has seen its effects and confirmed them.
    pub(super) async fn perform(
        self,
        client: &Client,
        act: ApiAction<'_>,
        dry: DryRun,
        done: &str,
    ) -> anyhow::Result<ExitCode> {
        if !dry.dry_run && !self.is_meant(client, act).await? {
            return Ok(ExitCode::FAILURE);
        }
        perform_act(client, act, dry, done).await
    }

    /// True when the flag or the user at the terminal confirms the change.
    pub(super) async fn is_meant(self, client: &Client, act: ApiAction<'_>) -> anyhow::Result<bool> {
        if self.yes {
            return Ok(true);
        }
        // The effects are read from the API, because only it knows what exists at this moment.
        let would = client.would(act).await?;
        // A change without effects needs no question.
        if would.is_empty() {
            return Ok(true);
        }
        would
            .iter()
            .for_each(|line| print_error(&format!("this would {line}")));
        let is_meant = prompt::ask_confirmation("Do it?", false).await?;
        if !is_meant {
            print_error("journeyman: nothing was done");
        }
        Ok(is_meant)
    }
}

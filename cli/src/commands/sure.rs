//! Confirmation of irreversible changes: shows the loss and asks.

use std::process::ExitCode;

use api::{Act, Client};
use clap::Args;

use super::{
    EXIT_SETTINGS,
    acting::{DryRun, perform},
    ask, say_error,
};

/// Confirmation option of destructive commands.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct Sure {
    /// Do not ask first; required without a terminal
    #[arg(long, short)]
    yes: bool,
}

impl Sure {
    /// Exit code when confirmation is missing and there is no terminal for the question.
    pub(super) fn refused(self, DryRun { dry_run }: DryRun) -> Option<ExitCode> {
        if self.yes || dry_run || ask::is_possible() {
            return None;
        }
        say_error(
            "journeyman: --yes is missing, and there is no terminal to ask at; --dry-run shows what would be lost",
        );
        Some(ExitCode::from(EXIT_SETTINGS))
    }

    /// Performs the change after the user has seen its effects and confirmed them.
    pub(super) async fn perform(
        self,
        client: &Client,
        act: Act<'_>,
        dry: DryRun,
        done: &str,
    ) -> anyhow::Result<ExitCode> {
        if !dry.dry_run && !self.is_meant(client, act).await? {
            return Ok(ExitCode::FAILURE);
        }
        perform(client, act, dry, done).await
    }

    /// True when the flag or the user at the terminal confirms the change.
    pub(super) async fn is_meant(self, client: &Client, act: Act<'_>) -> anyhow::Result<bool> {
        if self.yes {
            return Ok(true);
        }
        let would = client.would(act).await?;
        // A change without effects needs no question.
        if would.is_empty() {
            return Ok(true);
        }
        would
            .iter()
            .for_each(|line| say_error(&format!("this would {line}")));
        let is_meant = ask::confirm("Do it?", false).await?;
        if !is_meant {
            say_error("journeyman: nothing was done");
        }
        Ok(is_meant)
    }
}

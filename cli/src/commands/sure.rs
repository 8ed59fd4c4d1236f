//! What cannot be undone is asked about first: what would be lost, and whether that is meant.

use std::process::ExitCode;

use api::{Act, Client};
use clap::Args;

use super::{
    EXIT_SETTINGS,
    acting::{DryRun, perform},
    ask, say_error,
};

/// For commands that destroy something.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct Sure {
    /// Do not ask first; needed where there is no terminal to ask at
    #[arg(long, short)]
    yes: bool,
}

impl Sure {
    /// The exit code where nobody has said that it is meant and nobody can be asked.
    pub(super) fn refused(self, DryRun { dry_run }: DryRun) -> Option<ExitCode> {
        if self.yes || dry_run || ask::is_possible() {
            return None;
        }
        say_error(
            "journeyman: --yes is missing, and there is no terminal to ask at; --dry-run shows what would be lost",
        );
        Some(ExitCode::from(EXIT_SETTINGS))
    }

    /// Does it, once whoever is at the terminal has seen what would happen and wants it.
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

    /// Whether it is meant, as the flag says or a person at the terminal.
    pub(super) async fn is_meant(self, client: &Client, act: Act<'_>) -> anyhow::Result<bool> {
        if self.yes {
            return Ok(true);
        }
        let would = client.would(act).await?;
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

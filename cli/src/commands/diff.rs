//! `journeyman diff`: the change at an approval gate.

use std::process::ExitCode;

use clap::Args;
use domain::RunId;

use super::say_long;
use crate::{
    access,
    args::{Api, Paging},
};

/// Print the change that waits for a decision
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The run
    run: RunId,
    #[command(flatten)]
    paging: Paging,
    #[command(flatten)]
    api: Api,
}

pub(super) async fn run(Arguments { run, paging, api }: Arguments) -> anyhow::Result<ExitCode> {
    let text = access::client(&api)?.diff(&run).await?;
    say_long([text.trim_end()], paging);
    Ok(ExitCode::SUCCESS)
}

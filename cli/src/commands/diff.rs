//! `journeyman diff`: the change at an approval gate.

use std::process::ExitCode;

use clap::Args;
use domain::RunId;

use super::print_long;
use crate::{
    access,
    args::{ApiArguments, PagerOptions},
};

/// Print the change that waits for a decision
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The run
    run: RunId,
    #[command(flatten)]
    paging: PagerOptions,
    #[command(flatten)]
    api: ApiArguments,
}

pub(super) async fn run_command(Arguments { run, paging, api }: Arguments) -> anyhow::Result<ExitCode> {
    let text = access::build_client(&api)?.diff(&run).await?;
    print_long([text.trim_end()], paging);
    Ok(ExitCode::SUCCESS)
}

//! `journeyman diff`: what a run asks a person about.

use std::process::ExitCode;

use clap::Args;
use domain::RunId;

use super::say;
use crate::{access, args::Api};

/// Print the change that a run asks a person about
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The run
    run: RunId,
    #[command(flatten)]
    api: Api,
}

pub(super) async fn run(Arguments { run, api }: Arguments) -> anyhow::Result<ExitCode> {
    let text = access::client(&api)?.diff(&run).await?;
    say(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

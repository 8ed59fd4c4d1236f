//! `journeyman stop`: one run, or all of a ticket.

use std::process::ExitCode;

use api::Act;
use clap::Args;
use domain::RunId;

use super::acting::{DryRun, perform};
use crate::{
    access,
    args::{self, Api},
};

/// Stop a run, or every live run of a ticket
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// jira:ENG-12@57 for one run, jira:ENG-12 or ENG-12 for all of the ticket
    target: String,
    #[command(flatten)]
    dry: DryRun,
    #[command(flatten)]
    api: Api,
}

pub(super) async fn run(Arguments { target, dry, api }: Arguments) -> anyhow::Result<ExitCode> {
    let client = access::client(&api)?;
    let done = format!("stop asked for: {target}");
    match target.parse::<RunId>() {
        Ok(run) => perform(&client, Act::StopRun(&run), dry, &done).await,
        Err(_) => {
            let ticket = args::ticket(&target).map_err(anyhow::Error::msg)?;
            perform(&client, Act::StopTicket(&ticket), dry, &done).await
        }
    }
}

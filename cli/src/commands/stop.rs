//! `journeyman stop`: stops one run, or all live runs of a ticket.

use std::process::ExitCode;

use api::Act;
use clap::Args;
use domain::RunId;

use super::{
    acting::{DryRun, perform},
    sure::Sure,
};
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
    sure: Sure,
    #[command(flatten)]
    api: Api,
}

/// Stops the target. A named run needs no confirmation; the live runs of a ticket may be more than
/// the user expects.
pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments {
        target,
        dry,
        sure,
        api,
    } = asked;
    let done = format!("stop asked for: {target}");
    if let Ok(run) = target.parse::<RunId>() {
        return perform(&access::client(&api)?, Act::StopRun(&run), dry, &done).await;
    }
    let ticket = args::ticket(&target).map_err(anyhow::Error::msg)?;
    if let Some(refused) = sure.refused(dry) {
        return Ok(refused);
    }
    let client = access::client(&api)?;
    sure.perform(&client, Act::StopTicket(&ticket), dry, &done).await
}

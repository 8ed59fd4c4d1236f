//! `journeyman stop`: stops one run, or all live runs of a ticket.

use std::process::ExitCode;

use api::ApiAction;
use clap::Args;
use domain::RunId;

use super::confirmation::{ConfirmationOption, DryRun, perform_act};
use crate::{
    access,
    args::{self, ApiArguments},
};

/// Stop a run, or every live run of a ticket
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// jira:ENG-12@57 for one run, jira:ENG-12 or ENG-12 for all of the ticket
    target: String,
    #[command(flatten)]
    dry: DryRun,
    #[command(flatten)]
    sure: ConfirmationOption,
    #[command(flatten)]
    api: ApiArguments,
}

/// Stops the target. A named run needs no confirmation; the live runs of a ticket may be more than
/// the user expects.
pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments {
        target,
        dry,
        sure,
        api,
    } = asked;
    let done = format!("stop asked for: {target}");
    if let Ok(run) = target.parse::<RunId>() {
        return perform_act(&access::build_client(&api)?, ApiAction::StopRun(&run), dry, &done).await;
    }
    let ticket = args::parse_ticket(&target).map_err(anyhow::Error::msg)?;
    if let Some(refused) = sure.refused(dry) {
        return Ok(refused);
    }
    let client = access::build_client(&api)?;
    sure.perform(&client, ApiAction::StopTicket(&ticket), dry, &done)
        .await
}

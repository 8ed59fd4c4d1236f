//! `journeyman purge`: deletes the records of a ticket.

use std::process::ExitCode;

use api::ApiAction;
use clap::Args;

use super::confirmation::{ConfirmationOption, DryRun};
use crate::{access, args::TicketArguments};

/// Delete all records of a ticket without live runs (needs an admin's token)
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    of: TicketArguments,
    #[command(flatten)]
    dry: DryRun,
    #[command(flatten)]
    sure: ConfirmationOption,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    if let Some(refused) = asked.sure.refused(asked.dry) {
        return Ok(refused);
    }
    let TicketArguments { ticket, api } = asked.of;
    let (client, done) = (access::build_client(&api)?, format!("purged: {ticket}"));
    asked
        .sure
        .perform(&client, ApiAction::Purge(&ticket), asked.dry, &done)
        .await
}

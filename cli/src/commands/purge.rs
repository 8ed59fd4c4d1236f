//! `journeyman purge`: deletes the records of a ticket.

use std::process::ExitCode;

use api::Act;
use clap::Args;

use super::{acting::DryRun, sure::Sure};
use crate::{access, args::OfTicket};

/// Delete all records of a ticket without live runs (needs an admin's token)
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    of: OfTicket,
    #[command(flatten)]
    dry: DryRun,
    #[command(flatten)]
    sure: Sure,
}

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    if let Some(refused) = asked.sure.refused(asked.dry) {
        return Ok(refused);
    }
    let OfTicket { ticket, api } = asked.of;
    let (client, done) = (access::client(&api)?, format!("purged: {ticket}"));
    asked
        .sure
        .perform(&client, Act::Purge(&ticket), asked.dry, &done)
        .await
}

//! `journeyman purge`: forgets a ticket.

use std::process::ExitCode;

use api::Act;
use clap::Args;

use super::acting::{DryRun, perform};
use crate::{access, args::OfTicket};

/// Forget all that is stored of a ticket that nobody works on (needs an admin's token)
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    of: OfTicket,
    #[command(flatten)]
    dry: DryRun,
}

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    let OfTicket { ticket, api } = asked.of;
    let client = access::client(&api)?;
    perform(
        &client,
        Act::Purge(&ticket),
        asked.dry,
        &format!("purged: {ticket}"),
    )
    .await
}

//! `journeyman retry`: retries a ticket.

use std::process::ExitCode;

use api::Act;
use clap::Args;

use super::acting::{DryRun, perform};
use crate::{access, args::OfTicket};

/// Retry: a waiting run at once, a quarantined ticket from its current state, a failed job from the start
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
        Act::RetryTicket(&ticket),
        asked.dry,
        &format!("retry asked for: {ticket}"),
    )
    .await
}

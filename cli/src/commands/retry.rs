//! `journeyman retry`: retries a ticket.

use std::process::ExitCode;

use api::ApiAction;
use clap::Args;

use super::confirmation::{DryRun, perform_act};
use crate::{access, args::TicketArguments};

/// Retry: a waiting run at once, a quarantined ticket from its current state, a failed job from the start
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    of: TicketArguments,
    #[command(flatten)]
    dry: DryRun,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let TicketArguments { ticket, api } = asked.of;
    let client = access::build_client(&api)?;
    perform_act(
        &client,
        ApiAction::RetryTicket(&ticket),
        asked.dry,
        &format!("retry asked for: {ticket}"),
    )
    .await
}

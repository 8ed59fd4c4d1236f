//! `journeyman purge`: forgets a ticket.

use std::process::ExitCode;

use domain::TicketKey;

use super::say;
use crate::{api::Client, args};

pub(super) async fn run(ticket: &TicketKey, api: &args::Api) -> anyhow::Result<ExitCode> {
    Client::from_args(api)?.purge(ticket).await?;
    say(&format!("purged: {ticket}"));
    Ok(ExitCode::SUCCESS)
}

//! `journeyman retry`: tries a ticket again.

use std::process::ExitCode;

use domain::TicketKey;

use super::say;
use crate::{api::Client, args};

pub(super) async fn run(ticket: &TicketKey, api: &args::Api) -> anyhow::Result<ExitCode> {
    Client::from_args(api)?.retry_ticket(ticket).await?;
    say(&format!("retry asked for: {ticket}"));
    Ok(ExitCode::SUCCESS)
}

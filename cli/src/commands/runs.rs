//! `journeyman runs`: the list.

use std::process::ExitCode;

use clap::Args;
use domain::TicketKey;

use super::say;
use crate::{
    access,
    args::{Api, ticket},
};

/// List runs, newest last
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Only this ticket's
    #[arg(long, value_parser = ticket)]
    ticket: Option<TicketKey>,
    #[command(flatten)]
    api: Api,
}

pub(super) async fn run(Arguments { ticket, api }: Arguments) -> anyhow::Result<ExitCode> {
    for run in access::client(&api)?.runs(ticket.as_ref()).await? {
        let status = serde_json::to_value(run.status)?;
        let reason = run
            .stop
            .as_ref()
            .map(domain::StopReason::as_str)
            .or(run.waits_for.as_deref())
            .unwrap_or_default()
            .to_owned();
        say(&format!(
            "{:<28} {:<12} {} {reason}",
            run.id,
            run.job.as_str(),
            status.as_str().unwrap_or_default()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

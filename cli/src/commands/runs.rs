//! `journeyman runs`: the list.

use std::process::ExitCode;

use domain::TicketKey;

use super::say;
use crate::{api::Client, args};

pub(super) async fn run(ticket: Option<&TicketKey>, api: &args::Api) -> anyhow::Result<ExitCode> {
    for run in Client::from_args(api)?.runs(ticket).await? {
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

//! `journeyman diff`, `decide`, `approve`, `reject` and `feedback`: what a run asks a person about, and the answer.

use std::process::ExitCode;

use anyhow::bail;
use domain::{RunId, WaitsFor};
use ingest::api::types::RunView;

use super::say;
use crate::{api::Client, args};

pub(super) async fn diff(run: &RunId, api: &args::Api) -> anyhow::Result<ExitCode> {
    let text = Client::from_args(api)?.diff(run).await?;
    say(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn decide(
    run: &RunId,
    verdict: args::Verdict,
    head: &str,
    feedback: &str,
    api: &args::Api,
) -> anyhow::Result<ExitCode> {
    let client = Client::from_args(api)?;
    client.decide(run, verdict.into(), head, feedback).await?;
    say(&format!("decided: {run}"));
    Ok(ExitCode::SUCCESS)
}

/// Decides about the one run of a ticket that waits for it.
pub(super) async fn decide_about(
    of: &args::OfTicket,
    verdict: args::Verdict,
    head: &str,
    feedback: &str,
) -> anyhow::Result<ExitCode> {
    let args::OfTicket { ticket, api } = of;
    let runs = Client::from_args(api)?.runs(Some(ticket)).await?;
    let waits = |run: &&RunView| run.waits_for.as_deref() == Some(WaitsFor::Decision.as_str());
    let waiting: Vec<RunId> = runs
        .iter()
        .filter(waits)
        .map(|run| run.id.parse())
        .collect::<Result<_, _>>()?;
    match waiting.as_slice() {
        [run] => decide(run, verdict, head, feedback, api).await,
        [] => bail!("no run of {ticket} waits for a decision (`journeyman runs --ticket {ticket}`)"),
        several => {
            let several: Vec<String> = several.iter().map(ToString::to_string).collect();
            bail!(
                "{} runs of {ticket} wait for a decision; decide about one with `journeyman decide RUN`: {}",
                several.len(),
                several.join(", ")
            )
        }
    }
}

//! Decision of a user, for `decide`, `approve`, `reject` and `feedback`.

use std::process::ExitCode;

use anyhow::bail;
use api::{Act, types::RunView};
use domain::{RunId, Verdict, WaitsFor};

use super::acting::{DryRun, perform};
use crate::{
    access,
    args::{Api, OfTicket},
};

/// Decision with its options.
pub(super) struct Answer<'a> {
    pub(super) verdict: Verdict,
    /// Commit or plan; empty: the only open decision.
    pub(super) head: &'a str,
    pub(super) feedback: &'a str,
    pub(super) dry: DryRun,
}

/// Decides about one run.
pub(super) async fn decide(run: &RunId, answer: Answer<'_>, api: &Api) -> anyhow::Result<ExitCode> {
    let decision = Act::Decide {
        run,
        verdict: answer.verdict,
        head: answer.head,
        feedback: answer.feedback,
    };
    let client = access::client(api)?;
    perform(&client, decision, answer.dry, &format!("decided: {run}")).await
}

/// Decides about the ticket's only run that waits for a decision.
pub(super) async fn decide_about(of: &OfTicket, answer: Answer<'_>) -> anyhow::Result<ExitCode> {
    let OfTicket { ticket, api } = of;
    let runs = access::client(api)?.runs(Some(ticket)).await?;
    let waits = |run: &&RunView| run.waits_for.as_deref() == Some(WaitsFor::Decision.as_str());
    let waiting: Vec<RunId> = runs
        .iter()
        .filter(waits)
        .map(|run| run.id.parse())
        .collect::<Result<_, _>>()?;
    match waiting.as_slice() {
        [run] => decide(run, answer, api).await,
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

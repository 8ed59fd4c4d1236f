//! Decision of a user, for `decide`, `approve`, `reject` and `feedback`.

use std::process::ExitCode;

use anyhow::bail;
use api::{ApiAction, types::RunView};
use domain::{DecisionVerdict, RunId, WaitCondition};

use super::dry_run::{DryRun, perform_act};
use crate::{
    access,
    args::{ApiArguments, TicketArguments},
};

/// Decision with its options.
pub(super) struct DecisionAnswer<'a> {
    pub(super) verdict: DecisionVerdict,
    /// Commit or plan; empty: the only open decision.
    pub(super) head: &'a str,
    pub(super) feedback: &'a str,
    pub(super) dry: DryRun,
}

/// Decides about one run.
pub(super) async fn decide_run(
    run: &RunId,
    answer: DecisionAnswer<'_>,
    api: &ApiArguments,
) -> anyhow::Result<ExitCode> {
    let decision = ApiAction::Decide {
        run,
        verdict: answer.verdict,
        head: answer.head,
        feedback: answer.feedback,
    };
    let client = access::build_client(api)?;
    perform_act(&client, decision, answer.dry, &format!("decided: {run}")).await
}

/// Decides about the ticket's only run that waits for a decision.
pub(super) async fn decide_ticket(
    of: &TicketArguments,
    answer: DecisionAnswer<'_>,
) -> anyhow::Result<ExitCode> {
    let TicketArguments { ticket, api } = of;
    let runs = access::build_client(api)?.runs(Some(ticket)).await?;
    let waits = |run: &&RunView| run.waits_for.as_deref() == Some(WaitCondition::Decision.as_str());
    let waiting: Vec<RunId> = runs
        .iter()
        .filter(waits)
        .map(|run| run.id.parse())
        .collect::<Result<_, _>>()?;
    match waiting.as_slice() {
        [run] => decide_run(run, answer, api).await,
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

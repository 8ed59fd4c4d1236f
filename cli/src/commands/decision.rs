//! Decisions of users: `journeyman decide`, `approve`, `reject` and `feedback`, and `diff`, which prints the change.

use std::process::ExitCode;

use anyhow::bail;
use api::{ApiAction, types::RunView};
use clap::{Args, ValueEnum};
use domain::{DecisionVerdict, RunId, WaitCondition};

use super::{
    confirmation::{DryRun, perform_act},
    print_long,
};
use crate::{
    access,
    args::{ApiArguments, PagerOptions, TicketArguments},
};

/// Decide at a run's approval gate
#[derive(Debug, Args)]
pub(super) struct DecideArguments {
    /// The run that waits
    run: RunId,
    /// The decision
    verdict: VerdictArgument,
    /// The commit that you have read, or its first 12 characters; needed to approve
    #[arg(long, value_name = "COMMIT", required_if_eq("verdict", "approve"))]
    head: Option<String>,
    /// For `revise`: what to change
    #[arg(long, default_value = "")]
    feedback: String,
    #[command(flatten)]
    dry: DryRun,
    #[command(flatten)]
    api: ApiArguments,
}

/// Approve the change or plan of a ticket that waits for it
#[derive(Debug, Args)]
pub(super) struct ApproveArguments {
    #[command(flatten)]
    of: TicketArguments,
    #[command(flatten)]
    dry: DryRun,
    /// The commit or plan that you have read, or its first 12 characters
    head: String,
}

/// Reject the change or plan of a ticket that waits for a decision; its run ends
#[derive(Debug, Args)]
pub(super) struct RejectArguments {
    #[command(flatten)]
    of: TicketArguments,
    #[command(flatten)]
    dry: DryRun,
}

/// Request changes to a ticket's pending change or plan
#[derive(Debug, Args)]
pub(super) struct FeedbackArguments {
    #[command(flatten)]
    of: TicketArguments,
    #[command(flatten)]
    dry: DryRun,
    /// The changes to make
    text: String,
}

/// Print the change of a run: the one that waits for a decision, else the last one
#[derive(Debug, Args)]
pub(super) struct DiffArguments {
    /// The run
    run: RunId,
    #[command(flatten)]
    paging: PagerOptions,
    #[command(flatten)]
    api: ApiArguments,
}

/// Decision at an approval gate.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum VerdictArgument {
    /// Push the change.
    Approve,
    /// Stop the run.
    Reject,
    /// Return it to the model with the feedback.
    Revise,
}

impl From<VerdictArgument> for DecisionVerdict {
    fn from(verdict: VerdictArgument) -> Self {
        match verdict {
            VerdictArgument::Approve => Self::Approve,
            VerdictArgument::Reject => Self::Reject,
            VerdictArgument::Revise => Self::Revise,
        }
    }
}

/// Decision with its options.
struct DecisionAnswer<'a> {
    verdict: DecisionVerdict,
    /// Commit or plan; empty: the only open decision.
    head: &'a str,
    feedback: &'a str,
    dry: DryRun,
}

pub(super) async fn run_decide(asked: DecideArguments) -> anyhow::Result<ExitCode> {
    let answer = DecisionAnswer {
        verdict: asked.verdict.into(),
        head: asked.head.as_deref().unwrap_or_default(),
        feedback: &asked.feedback,
        dry: asked.dry,
    };
    decide_run(&asked.run, answer, &asked.api).await
}

pub(super) async fn run_approve(asked: ApproveArguments) -> anyhow::Result<ExitCode> {
    let answer = DecisionAnswer {
        verdict: DecisionVerdict::Approve,
        head: &asked.head,
        feedback: "",
        dry: asked.dry,
    };
    decide_ticket(&asked.of, answer).await
}

pub(super) async fn run_reject(asked: RejectArguments) -> anyhow::Result<ExitCode> {
    let answer = DecisionAnswer {
        verdict: DecisionVerdict::Reject,
        head: "",
        feedback: "",
        dry: asked.dry,
    };
    decide_ticket(&asked.of, answer).await
}

pub(super) async fn run_feedback(asked: FeedbackArguments) -> anyhow::Result<ExitCode> {
    let answer = DecisionAnswer {
        verdict: DecisionVerdict::Revise,
        head: "",
        feedback: &asked.text,
        dry: asked.dry,
    };
    decide_ticket(&asked.of, answer).await
}

pub(super) async fn run_diff(asked: DiffArguments) -> anyhow::Result<ExitCode> {
    let text = access::build_client(&asked.api)?
        .runs()
        .diff_text(&asked.run)
        .await?;
    print_long([text.trim_end()], asked.paging);
    Ok(ExitCode::SUCCESS)
}

/// Decides about one run.
async fn decide_run(run: &RunId, answer: DecisionAnswer<'_>, api: &ApiArguments) -> anyhow::Result<ExitCode> {
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
async fn decide_ticket(of: &TicketArguments, answer: DecisionAnswer<'_>) -> anyhow::Result<ExitCode> {
    let TicketArguments { ticket, api } = of;
    let runs = access::build_client(api)?.runs().recent(Some(ticket)).await?;
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

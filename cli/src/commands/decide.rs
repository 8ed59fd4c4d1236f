//! `journeyman decide`: decision by run.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use domain::RunId;

use super::{
    decision::{DecisionAnswer, decide_run},
    dry_run::DryRun,
};
use crate::args::ApiArguments;

/// Decide at a run's approval gate
#[derive(Debug, Args)]
pub(super) struct Arguments {
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

impl From<VerdictArgument> for domain::DecisionVerdict {
    fn from(verdict: VerdictArgument) -> Self {
        match verdict {
            VerdictArgument::Approve => Self::Approve,
            VerdictArgument::Reject => Self::Reject,
            VerdictArgument::Revise => Self::Revise,
        }
    }
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let answer = DecisionAnswer {
        verdict: asked.verdict.into(),
        head: asked.head.as_deref().unwrap_or_default(),
        feedback: &asked.feedback,
        dry: asked.dry,
    };
    decide_run(&asked.run, answer, &asked.api).await
}

//! `journeyman decide`: decision by run.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use domain::RunId;

use super::{
    acting::DryRun,
    decision::{Answer, decide},
};
use crate::args::Api;

/// Decide at a run's approval gate
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The run that waits
    run: RunId,
    /// The decision
    verdict: Verdict,
    /// The commit that you have read, or its first 12 characters; needed to approve
    #[arg(long, value_name = "COMMIT", required_if_eq("verdict", "approve"))]
    head: Option<String>,
    /// For `revise`: what to change
    #[arg(long, default_value = "")]
    feedback: String,
    #[command(flatten)]
    dry: DryRun,
    #[command(flatten)]
    api: Api,
}

/// Decision at an approval gate.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Verdict {
    /// Push the change.
    Approve,
    /// Stop the run.
    Reject,
    /// Return it to the model with the feedback.
    Revise,
}

impl From<Verdict> for domain::Verdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Approve => Self::Approve,
            Verdict::Reject => Self::Reject,
            Verdict::Revise => Self::Revise,
        }
    }
}

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    let answer = Answer {
        verdict: asked.verdict.into(),
        head: asked.head.as_deref().unwrap_or_default(),
        feedback: &asked.feedback,
        dry: asked.dry,
    };
    decide(&asked.run, answer, &asked.api).await
}

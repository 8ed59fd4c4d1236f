//! `journeyman feedback`: request for changes, by ticket.

use std::process::ExitCode;

use clap::Args;
use domain::DecisionVerdict;

use super::{
    decision::{DecisionAnswer, decide_ticket},
    dry_run::DryRun,
};
use crate::args::TicketArguments;

/// Request changes to a ticket's pending change or plan
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    of: TicketArguments,
    #[command(flatten)]
    dry: DryRun,
    /// The changes to make
    text: String,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let answer = DecisionAnswer {
        verdict: DecisionVerdict::Revise,
        head: "",
        feedback: &asked.text,
        dry: asked.dry,
    };
    decide_ticket(&asked.of, answer).await
}

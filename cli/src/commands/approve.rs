//! `journeyman approve`: approval by ticket.

use std::process::ExitCode;

use clap::Args;
use domain::DecisionVerdict;

use super::{
    decision::{DecisionAnswer, decide_ticket},
    dry_run::DryRun,
};
use crate::args::TicketArguments;

/// Approve the change or plan of a ticket that waits for it
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    of: TicketArguments,
    #[command(flatten)]
    dry: DryRun,
    /// The commit or plan that you have read, or its first 12 characters
    head: String,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let answer = DecisionAnswer {
        verdict: DecisionVerdict::Approve,
        head: &asked.head,
        feedback: "",
        dry: asked.dry,
    };
    decide_ticket(&asked.of, answer).await
}

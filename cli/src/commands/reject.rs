//! `journeyman reject`: rejection by ticket.

use std::process::ExitCode;

use clap::Args;
use domain::DecisionVerdict;

use super::{
    decision::{DecisionAnswer, decide_ticket},
    dry_run::DryRun,
};
use crate::args::TicketArguments;

/// Reject the change or plan of a ticket that waits for a decision; its run ends
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    of: TicketArguments,
    #[command(flatten)]
    dry: DryRun,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let answer = DecisionAnswer {
        verdict: DecisionVerdict::Reject,
        head: "",
        feedback: "",
        dry: asked.dry,
    };
    decide_ticket(&asked.of, answer).await
}

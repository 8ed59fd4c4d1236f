//! `journeyman reject`: rejection by ticket.

use std::process::ExitCode;

use clap::Args;
use domain::Verdict;

use super::{
    acting::DryRun,
    decision::{Answer, decide_about},
};
use crate::args::OfTicket;

/// Reject the change or plan of a ticket that waits for a decision; its run ends
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    of: OfTicket,
    #[command(flatten)]
    dry: DryRun,
}

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    let answer = Answer {
        verdict: Verdict::Reject,
        head: "",
        feedback: "",
        dry: asked.dry,
    };
    decide_about(&asked.of, answer).await
}

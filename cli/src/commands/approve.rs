//! `journeyman approve`: approval by ticket.

use std::process::ExitCode;

use clap::Args;
use domain::Verdict;

use super::{
    acting::DryRun,
    decision::{Answer, decide_about},
};
use crate::args::OfTicket;

/// Approve the change or plan of a ticket that waits for it
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    of: OfTicket,
    #[command(flatten)]
    dry: DryRun,
    /// The commit or plan that you have read, or its first 12 characters
    head: String,
}

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    let answer = Answer {
        verdict: Verdict::Approve,
        head: &asked.head,
        feedback: "",
        dry: asked.dry,
    };
    decide_about(&asked.of, answer).await
}

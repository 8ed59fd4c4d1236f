//! `journeyman feedback`: request for changes, by ticket.

use std::process::ExitCode;

use clap::Args;
use domain::Verdict;

use super::{
    acting::DryRun,
    decision::{Answer, decide_about},
};
use crate::args::OfTicket;

/// Request changes to a ticket's pending change or plan
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    of: OfTicket,
    #[command(flatten)]
    dry: DryRun,
    /// The changes to make
    text: String,
}

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    let answer = Answer {
        verdict: Verdict::Revise,
        head: "",
        feedback: &asked.text,
        dry: asked.dry,
    };
    decide_about(&asked.of, answer).await
}

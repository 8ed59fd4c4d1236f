//! `journeyman feedback`: a person's answer, by the ticket.

use std::process::ExitCode;

use clap::Args;
use domain::Verdict;

use super::{
    acting::DryRun,
    decision::{Answer, decide_about},
};
use crate::args::OfTicket;

/// Say what to change before the change or plan of a ticket is asked about again
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    of: OfTicket,
    #[command(flatten)]
    dry: DryRun,
    /// What to change
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

//! `journeyman say`: comment to the live runs of a ticket.

use std::process::ExitCode;

use clap::Args;
use domain::{RunId, TicketKey};

use super::say;
use crate::{access, args, args::Api};

/// Comment to the live runs of a ticket: the model reads it before its next turn
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The ticket, or one of its runs
    #[arg(value_name = "RUN|TICKET", value_parser = ticket)]
    ticket: TicketKey,
    /// The comment
    text: String,
    #[command(flatten)]
    api: Api,
}

/// Parses a ticket, or takes the ticket of a run: a comment goes to all runs of the ticket.
fn ticket(text: &str) -> Result<TicketKey, String> {
    match text.parse::<RunId>() {
        Ok(run) => Ok(run.ticket().clone()),
        Err(_) => args::ticket(text),
    }
}

pub(super) async fn run(Arguments { ticket, text, api }: Arguments) -> anyhow::Result<ExitCode> {
    access::client(&api)?.comment(&ticket, &text).await?;
    say(&format!("said to {ticket}"));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_stands_for_its_ticket() {
        for text in ["jira:ENG-12@57", "jira:ENG-12", "ENG-12"] {
            assert_eq!(ticket(text).unwrap().to_string(), "jira:ENG-12", "{text}");
        }
        assert!(ticket("nothing").is_err());
    }
}

//! `journeyman say`: comment to the live runs of a ticket.

use std::process::ExitCode;

use clap::Args;
use domain::{RunId, TicketKey};

use super::print_result;
use crate::{access, args, args::ApiArguments};

/// Comment to the live runs of a ticket: the model reads it before its next turn
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The ticket, or one of its runs
    #[arg(value_name = "RUN|TICKET", value_parser = parse_run_ticket)]
    ticket: TicketKey,
    /// The comment
    text: String,
    #[command(flatten)]
    api: ApiArguments,
}

/// Parses a ticket, or takes the ticket of a run: a comment goes to all runs of the ticket.
fn parse_run_ticket(text: &str) -> Result<TicketKey, String> {
    match text.parse::<RunId>() {
        Ok(run) => Ok(run.ticket().clone()),
        Err(_) => args::parse_ticket(text),
    }
}

pub(super) async fn run_command(Arguments { ticket, text, api }: Arguments) -> anyhow::Result<ExitCode> {
    access::build_client(&api)?.comment(&ticket, &text).await?;
    print_result(&format!("said to {ticket}"));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_stands_for_its_ticket() {
        for text in ["jira:ENG-12@57", "jira:ENG-12", "ENG-12"] {
            assert_eq!(
                parse_run_ticket(text).unwrap().to_string(),
                "jira:ENG-12",
                "{text}"
            );
        }
        assert!(parse_run_ticket("nothing").is_err());
    }
}

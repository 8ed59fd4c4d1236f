//! `journeyman say`: words for the runs of a ticket that are under way.

use std::process::ExitCode;

use clap::Args;
use domain::{RunId, TicketKey};

use super::say;
use crate::{access, args, args::Api};

/// Say something to the runs of a ticket that are under way: the model reads it before its next turn
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The ticket, or one of its runs
    #[arg(value_name = "RUN|TICKET", value_parser = ticket)]
    ticket: TicketKey,
    /// What to say
    text: String,
    #[command(flatten)]
    api: Api,
}

/// A run stands for its ticket: what is said on a ticket is news for all its runs.
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

//! Interactive choice of a ticket and an action.

use std::process::ExitCode;

use api::{Client, implement, types::TicketLine};
use domain::{Job, RunId, TicketKey};
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        INTERRUPTED,
        follow::{exit_code, show},
        say, say_error,
        show_ticket::page,
    },
    question::{choose, confirm},
    row,
};
use crate::args::Format;

const PROCESS: &str = "Process this ticket (create a pull request)";
const PREVIEW: &str = "Process with dry-run (only show what would be started)";
const DETAILS: &str = "View ticket details";

/// Result of the choices.
pub(super) enum Chosen {
    /// Ticket to process.
    Ticket(TicketKey),
    /// No further action, with the exit code.
    Nothing(ExitCode),
}

/// Menu loop between the list and a ticket, until the user processes one or leaves.
pub(super) async fn run(
    client: &Client,
    tickets: Vec<TicketLine>,
    shutdown: &CancellationToken,
) -> anyhow::Result<Chosen> {
    match walk(client, tickets, shutdown).await {
        Err(error) if is_interruption(&error) => Ok(Chosen::Nothing(INTERRUPTED.into())),
        Ok(Some(ticket)) => Ok(Chosen::Ticket(ticket)),
        Ok(None) => Ok(Chosen::Nothing(ExitCode::SUCCESS)),
        Err(error) => Err(error),
    }
}

fn is_interruption(error: &anyhow::Error) -> bool {
    // The error displays its cause instead of returning it as the source.
    let dialoguer::Error::IO(io) = match error.downcast_ref() {
        Some(error) => error,
        None => return false,
    };
    io.kind() == std::io::ErrorKind::Interrupted
}

/// Ticket to process; `None` when the user leaves.
async fn walk(
    client: &Client,
    tickets: Vec<TicketLine>,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<TicketKey>> {
    if tickets.is_empty() {
        say("there are no such tickets");
        return Ok(None);
    }
    let lines: Vec<String> = tickets.iter().map(line).collect();
    let mut last = 0;
    while let Some(chosen) = choose(shutdown, "Select a ticket to process", lines.clone(), last).await? {
        last = chosen;
        let ticket: TicketKey = tickets[chosen].ticket.parse()?;
        if act_on(client, &ticket, shutdown).await? {
            return Ok(Some(ticket));
        }
    }
    Ok(None)
}

/// Menu of one ticket; true when the user processes it, false for a return to the list.
async fn act_on(client: &Client, ticket: &TicketKey, shutdown: &CancellationToken) -> anyhow::Result<bool> {
    let mut last = 0;
    loop {
        let actions = [PROCESS, PREVIEW, DETAILS].map(str::to_owned).to_vec();
        let Some(chosen) = choose(shutdown, "What would you like to do", actions, last).await? else {
            return Ok(false);
        };
        last = chosen;
        let done = match chosen {
            0 => {
                let question = format!("Process {} and create a pull request?", ticket.short());
                match confirm(shutdown, question).await? {
                    true => return Ok(true),
                    false => Ok(()),
                }
            }
            1 => preview(client, ticket).await,
            _ => {
                let text = client.ticket_text(ticket).await;
                text.map(|text| say(&page(&text))).map_err(Into::into)
            }
        };
        // A failed action is reported and leads back to the menu.
        if let Err(problem) = done {
            say_error(&format!("journeyman: {problem:#}"));
        }
    }
}

async fn preview(client: &Client, ticket: &TicketKey) -> anyhow::Result<()> {
    say(&super::super::dispatch::told(
        &client.plan(&implement(ticket)).await?,
    ));
    Ok(())
}

/// Processes a ticket with the running services.
pub(super) async fn process(
    client: &Client,
    ticket: &TicketKey,
    shutdown: &CancellationToken,
) -> anyhow::Result<ExitCode> {
    let run: RunId = client.dispatch(ticket, Job::Implement).await?.run.parse()?;
    say(&format!("run {run}"));
    match shutdown
        .run_until_cancelled(show(client, &run, Format::Text))
        .await
    {
        Some(followed) => Ok(exit_code(&followed?)),
        None => {
            say_error(&format!(
                "the run goes on without being watched: journeyman journal {run} --follow"
            ));
            Ok(INTERRUPTED.into())
        }
    }
}

fn line(ticket: &TicketLine) -> String {
    let [key, status, run, summary] = row(ticket);
    let run = if run.is_empty() { run } else { format!(" ({run})") };
    format!("{key:<18} [{status:<18}] {summary}{run}")
}

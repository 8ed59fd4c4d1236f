//! Choosing a ticket with the arrow keys, and what to do with it.

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

/// What came of the choices.
pub(super) enum Chosen {
    /// A ticket that is to be processed.
    Ticket(TicketKey),
    /// Nothing more is wanted.
    Nothing(ExitCode),
}

/// From the list to a ticket and back, until one is to be processed or nothing is wanted.
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
    // It says its cause, and does not name it as one.
    let dialoguer::Error::IO(io) = match error.downcast_ref() {
        Some(error) => error,
        None => return false,
    };
    io.kind() == std::io::ErrorKind::Interrupted
}

/// The ticket that is to be processed.
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

/// What is done with a ticket: whether it is to be processed, or it goes back to the list.
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
        // Whoever chooses may choose something else.
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

/// Has the running services process a ticket.
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

//! Interactive choice of a ticket and an action, with arrow keys at the terminal.

use std::process::ExitCode;

use anyhow::Context;
use api::{Client, types::TicketLine};
use dialoguer::{Confirm, Select, console::Term, theme::SimpleTheme};
use domain::TicketKey;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        EXIT_INTERRUPTED,
        follow::choose_exit_code,
        print_error, print_result,
        process_ticket::{print_new_run, print_planned_job},
        ticket::render_ticket,
    },
    build_row,
};

const PROCESS: &str = "Process this ticket (create a pull request)";
const PREVIEW: &str = "Process with dry-run (only show what would be started)";
const DETAILS: &str = "View ticket details";

// Visible lines of a list.
const SHOWN: usize = 20;

const CANCEL: &str = "Cancel";

/// Result of the choices.
pub(super) enum MenuChoice {
    /// Ticket to process.
    Ticket(TicketKey),
    /// No further action, with the exit code.
    Nothing(ExitCode),
}

/// Menu loop between the list and a ticket, until the user processes one or leaves with the exit code of the list.
pub(super) async fn run_menu(
    client: &Client,
    tickets: Vec<TicketLine>,
    listed: ExitCode,
    shutdown: &CancellationToken,
) -> anyhow::Result<MenuChoice> {
    match walk_list(client, tickets, shutdown).await {
        Err(error) if is_interruption(&error) => Ok(MenuChoice::Nothing(EXIT_INTERRUPTED.into())),
        Ok(Some(ticket)) => Ok(MenuChoice::Ticket(ticket)),
        Ok(None) => Ok(MenuChoice::Nothing(listed)),
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
async fn walk_list(
    client: &Client,
    tickets: Vec<TicketLine>,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<TicketKey>> {
    if tickets.is_empty() {
        print_result("there are no such tickets");
        return Ok(None);
    }
    let lines: Vec<String> = tickets.iter().map(render_ticket_line).collect();
    let mut last = 0;
    while let Some(chosen) = ask_choice(shutdown, "Select a ticket to process", lines.clone(), last).await? {
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
        let Some(chosen) = ask_choice(shutdown, "What would you like to do", actions, last).await? else {
            return Ok(false);
        };
        last = chosen;
        let done = match chosen {
            0 => {
                let question = format!("Process {} and create a pull request?", ticket.short());
                if ask_yes_no(shutdown, question).await? {
                    return Ok(true);
                }
                Ok(())
            }
            1 => print_planned_job(client, ticket).await,
            _ => {
                let text = client.tickets().text(ticket).await;
                text.map(|text| print_result(&render_ticket(&text)))
                    .map_err(Into::into)
            }
        };
        // A failed action is reported and leads back to the menu.
        if let Err(problem) = done {
            print_error(&format!("journeyman: {problem:#}"));
        }
    }
}

/// Processes a ticket with the running services.
pub(super) async fn process_in_services(
    client: &Client,
    ticket: &TicketKey,
    shutdown: &CancellationToken,
) -> anyhow::Result<ExitCode> {
    let (run, followed) = print_new_run(client, ticket, shutdown).await?;
    match followed {
        Some(followed) => Ok(choose_exit_code(&followed)),
        None => {
            print_error(&format!(
                "the run continues without being watched: journeyman journal {run} --follow"
            ));
            Ok(EXIT_INTERRUPTED.into())
        }
    }
}

fn render_ticket_line(ticket: &TicketLine) -> String {
    let [key, status, run, summary] = build_row(ticket);
    let run = if run.is_empty() { run } else { format!(" ({run})") };
    format!("{key:<18} [{status:<18}] {summary}{run}")
}

/// Index of the choice; `None` after Escape or "Cancel".
async fn ask_choice(
    shutdown: &CancellationToken,
    question: &'static str,
    mut lines: Vec<String>,
    from: usize,
) -> anyhow::Result<Option<usize>> {
    let cancel = lines.len();
    lines.push(CANCEL.to_owned());
    let asked = move || {
        let select = Select::with_theme(&SimpleTheme)
            .with_prompt(question)
            .items(&lines);
        select
            .default(from)
            .max_length(SHOWN)
            .interact_on_opt(&Term::stderr())
    };
    let chosen = ask_in_thread(shutdown, asked).await?;
    Ok(chosen.filter(|chosen| *chosen != cancel))
}

/// True for yes; Escape means no.
async fn ask_yes_no(shutdown: &CancellationToken, question: String) -> anyhow::Result<bool> {
    let asked = move || {
        let confirm = Confirm::with_theme(&SimpleTheme).with_prompt(question);
        confirm.default(true).interact_on_opt(&Term::stderr())
    };
    Ok(ask_in_thread(shutdown, asked).await?.unwrap_or(false))
}

/// Runs a question on a blocking thread. A signal exits the process here, because nothing can cancel a thread that waits
/// for a key. Between two keys the terminal is not raw, and then Ctrl-C is a signal.
async fn ask_in_thread<T: Send + 'static>(
    shutdown: &CancellationToken,
    ask: impl FnOnce() -> dialoguer::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let before = tcgetattr(std::io::stderr());
    let asked = tokio::task::spawn_blocking(ask);
    let Some(answer) = shutdown.run_until_cancelled(asked).await else {
        if let Ok(before) = before {
            // The process exits, so a failed restore has no one to be reported to.
            let _ = tcsetattr(std::io::stderr(), OptionalActions::Now, &before);
        }
        drop(Term::stderr().show_cursor());
        std::process::exit(EXIT_INTERRUPTED.into());
    };
    answer?
        .inspect_err(|_| drop(Term::stderr().show_cursor()))
        .context("no choice was made")
}

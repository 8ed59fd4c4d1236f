//! `journeyman open`: the page of a ticket, its pull request or a run, in a browser.

use std::{
    io::{IsTerminal, stdout},
    process::ExitCode,
};

use anyhow::{Context, ensure};
use api::{
    Client,
    types::{RunView, RunsQuery},
};
use clap::{Args, ValueEnum};
use domain::{TicketKey, address::percent_encode};

use super::{print_error, print_result};
use crate::{
    access,
    args::{ApiArguments, RunOrTicket, parse_run_or_ticket},
};

/// Open the page of a ticket or run in a browser, and print its address
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The run or ticket
    #[arg(value_name = "RUN|TICKET", value_parser = parse_run_or_ticket)]
    of: RunOrTicket,
    /// The page [default: for a run the console's when --console is given, else its pull request, else its ticket; for a ticket
    /// the tracker's]
    #[arg(long, short, value_enum)]
    page: Option<PageChoice>,
    /// Address of the console
    #[arg(long, value_name = "URL", env = "JOURNEYMAN_CONSOLE")]
    console: Option<String>,
    /// Print the address only (default when stdout is not a terminal)
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    api: ApiArguments,
}

/// Page to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PageChoice {
    /// The ticket at its tracker.
    Ticket,
    /// The newest pull request.
    PullRequest,
    /// The page of the console.
    Console,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let client = access::build_client(&asked.api)?;
    let url = find_page_address(&client, &asked).await?;
    print_result(&url);
    if asked.print || !stdout().is_terminal() {
        return Ok(ExitCode::SUCCESS);
    }
    // The address comes from a tracker or a forge. Only web addresses are opened, because a browser also accepts other schemes.
    let is_page = url.starts_with("https://") || url.starts_with("http://");
    ensure!(
        is_page,
        "{url} is not an address of the web: no browser was opened"
    );
    if let Err(error) = webbrowser::open(&url) {
        print_error(&format!("journeyman: no browser was opened: {error}"));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

async fn find_page_address(client: &Client, asked: &Arguments) -> anyhow::Result<String> {
    let console = asked.console.as_deref();
    let (run, ticket) = match &asked.of {
        RunOrTicket::Run(run) => (Some(client.runs().read(run).await?), run.ticket()),
        RunOrTicket::Ticket(ticket) => (None, ticket),
    };
    let page = asked
        .page
        .unwrap_or_else(|| choose_default_page(run.as_ref(), console));
    match page {
        PageChoice::Console => {
            let console = console.context(
                "the address of the console is missing: give --console URL, or set JOURNEYMAN_CONSOLE",
            )?;
            Ok(build_console_address(console, run.as_ref(), ticket))
        }
        PageChoice::Ticket => {
            let url = client.tickets().text(ticket).await?.url;
            ensure!(
                !url.is_empty(),
                "{ticket} has no page at its tracker: --page console opens that of the console"
            );
            Ok(url)
        }
        PageChoice::PullRequest => {
            let runs = match run {
                Some(run) => vec![run],
                None => list_ticket_runs(client, ticket).await?,
            };
            let found = runs.iter().find_map(find_pull_request_url);
            found.with_context(|| format!("{ticket} has no pull request yet"))
        }
    }
}

/// Default page: the most specific one that exists.
fn choose_default_page(run: Option<&RunView>, console: Option<&str>) -> PageChoice {
    match run {
        Some(_) if console.is_some() => PageChoice::Console,
        Some(run) if find_pull_request_url(run).is_some() => PageChoice::PullRequest,
        Some(_) | None => PageChoice::Ticket,
    }
}

fn build_console_address(console: &str, run: Option<&RunView>, ticket: &TicketKey) -> String {
    let console = console.trim_end_matches('/');
    match run {
        Some(run) => format!("{console}/runs/{}", percent_encode(&run.id)),
        None => format!("{console}/tickets/{}", percent_encode(&ticket.to_string())),
    }
}

/// Runs of a ticket, newest first.
async fn list_ticket_runs(client: &Client, ticket: &TicketKey) -> anyhow::Result<Vec<RunView>> {
    let query = RunsQuery {
        ticket: Some(ticket.to_string()),
        ..RunsQuery::default()
    };
    Ok(client.runs().list(&query).await?)
}

fn find_pull_request_url(run: &RunView) -> Option<String> {
    let opened = &run.overview.as_ref()?.pull_requests;
    opened.last().map(|opened| opened.url.clone())
}

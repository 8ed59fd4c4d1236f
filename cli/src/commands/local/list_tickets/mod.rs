//! `journeyman list-tickets`: list of tickets, or interactive choice.

mod menu;

use std::{io::IsTerminal, path::PathBuf, process::ExitCode};

use api::{
    Client,
    types::{ListProblem, RunView, TicketLine, TicketsQuery, TicketsView},
};
use clap::Args;
use console::{measure_text_width, truncate_str};
use domain::RepositoryName;
use ingest::IngestMode;
use tokio_util::sync::CancellationToken;

use self::menu::MenuChoice;
use super::{
    EXIT_INTERRUPTED, find_settings_file, one_shot::OneShotServices, print_error, print_json, print_list,
    print_long, process_ticket::process_ticket, report_wrong_arguments,
};
use crate::{
    access,
    args::{ApiArguments, OutputFormat, PagerOptions},
    exit_codes::derive_exit_code,
};

/// List the tickets of the projects and repositories that the rules name, in any status
#[derive(Debug, Clone, Args)]
#[command(visible_alias = "tickets")]
pub(in crate::commands) struct Arguments {
    /// Only tickets in this status: one of Jira's, or open or closed for GitHub [default: unfinished ones]
    #[arg(long)]
    status: Option<String>,
    /// Only tickets of this repository's Jira project and issues
    #[arg(long, value_name = "OWNER/NAME")]
    repository: Option<RepositoryName>,
    /// Choose a ticket with the arrow keys: process it, preview its job, or read it
    #[arg(long, short, conflicts_with = "output")]
    interactive: bool,
    /// Output format: a table, the API's answer, or one ticket per line
    #[arg(long, short, value_enum, default_value = "text")]
    output: OutputFormat,
    /// The rules file of the only repository; its tickets are listed without running services, which a choice starts
    #[arg(long = "config", value_name = "FILE")]
    rules: Option<PathBuf>,
    /// With --config: settings file [default: journeyman.toml, when it exists]
    #[arg(long, value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    settings: Option<PathBuf>,
    /// With --config: folder for data
    #[arg(long, value_name = "DIR", default_value = ".journeyman")]
    data: PathBuf,
    #[command(flatten)]
    paging: PagerOptions,
    #[command(flatten)]
    api: ApiArguments,
}

// Limit of the columns for status and last run, in terminal columns.
const CELL: usize = 28;

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    if asked.interactive && !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Ok(report_wrong_arguments(
            "--interactive needs a terminal to choose at; without it the list is printed",
        ));
    }
    let Some(rules) = &asked.rules else {
        let client = access::build_client(&asked.api)?;
        return list_from_services(&client, &asked).await;
    };
    let alone = |extent| OneShotServices {
        rules: Some(rules.clone()),
        file: find_settings_file(asked.settings.clone()),
        data: asked.data.clone(),
        more: Vec::new(),
        extent,
    };
    let chosen = alone(IngestMode::Answers)
        .run(async |client, shutdown| list_or_choose(&client, &asked, &shutdown).await);
    match chosen.await? {
        // The list ran with the API alone. Processing starts all services on the same data folder.
        Some(MenuChoice::Ticket(ticket)) => process_ticket(alone(IngestMode::Whole), &ticket).await,
        Some(MenuChoice::Nothing(code)) => Ok(code),
        None => Ok(EXIT_INTERRUPTED.into()),
    }
}

/// Lists the tickets of running services, and processes a chosen ticket there.
async fn list_from_services(client: &Client, asked: &Arguments) -> anyhow::Result<ExitCode> {
    // Only the interactive mode changes the terminal, so only there an interruption must restore it.
    let shutdown = if asked.interactive {
        bootstrap::listen_for_signals()[0].clone()
    } else {
        CancellationToken::new()
    };
    match list_or_choose(client, asked, &shutdown).await? {
        MenuChoice::Ticket(ticket) => menu::process_in_services(client, &ticket, &shutdown).await,
        MenuChoice::Nothing(code) => Ok(code),
    }
}

/// Prints the list, or offers it for a choice.
async fn list_or_choose(
    client: &Client,
    asked: &Arguments,
    shutdown: &CancellationToken,
) -> anyhow::Result<MenuChoice> {
    let query = TicketsQuery {
        status: asked.status.clone(),
        repository: asked.repository.as_ref().map(ToString::to_string),
        days: None,
    };
    let listed = client.tickets().list(&query).await?;
    print_list_problems(&listed.problems);
    let code = derive_exit_code(listed.problems.is_empty());
    if asked.interactive {
        return menu::run_menu(client, listed.tickets, code, shutdown).await;
    }
    match asked.output {
        OutputFormat::Json => print_json(&listed)?,
        OutputFormat::Jsonl => print_list(&listed.tickets, false)?,
        OutputFormat::Text => print_long(render_ticket_table(&listed), asked.paging),
    }
    Ok(MenuChoice::Nothing(code))
}

/// Prints the trackers whose tickets are missing from a list.
pub(super) fn print_list_problems(problems: &[ListProblem]) {
    for ListProblem { repository, problem } in problems {
        print_error(&format!("journeyman: {repository}: {problem}"));
    }
}

/// Table with one line per ticket, below a line with the column names.
fn render_ticket_table(listed: &TicketsView) -> Vec<String> {
    let names = ["TICKET", "STATUS", "LAST RUN", "TITLE"].map(str::to_owned);
    let rows = listed.tickets.iter().map(build_row);
    let rows: Vec<[String; 4]> = std::iter::once(names).chain(rows).collect();
    // Widths are terminal columns, because titles may contain wide characters.
    let widths = [0, 1, 2].map(|column| {
        rows.iter()
            .map(|row| measure_text_width(&row[column]))
            .max()
            .unwrap_or(0)
    });
    let line = |row: &[String; 4]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| pad_cell(cell, width));
        let line: String = cells.chain([row[3].clone()]).collect();
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn pad_cell(cell: &str, width: usize) -> String {
    let gap = width.saturating_sub(measure_text_width(cell));
    format!("{cell}{}", " ".repeat(gap + 2))
}

fn build_row(ticket: &TicketLine) -> [String; 4] {
    let asks = if ticket.asks { " *" } else { "" };
    let shown = |text: &str| domain::text::escape_hidden(text);
    [
        shown(&ticket.ticket),
        // The mark follows the truncation, so that a long status does not hide it.
        format!("{}{asks}", truncate_str(&shown(&ticket.status), CELL, "…")),
        ticket.run.as_ref().map(describe_run_state).unwrap_or_default(),
        shown(&ticket.summary),
    ]
}

/// Stop reason of a run, or its current state.
fn describe_run_state(run: &RunView) -> String {
    let status = serde_json::to_value(run.status).unwrap_or_default();
    let stop = run.stop.as_ref().map(domain::StopReason::as_str);
    let state = stop.or(run.waits_for.as_deref()).or(status.as_str());
    format!("{} {}", run.job, state.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticket_table_aligns_wide_titles() {
        let ticket = |key: &str, status: &str, summary: &str, asks| TicketLine {
            ticket: key.to_owned(),
            repository: "acme/shop".to_owned(),
            status: status.to_owned(),
            summary: summary.to_owned(),
            asks,
            run: None,
        };
        let listed = TicketsView {
            tickets: vec![
                ticket("jira:ENG-1", "Ready for Agent", "Fix\u{1b}[2J", true),
                ticket("jira:ENG-12", "完了", "Grüße", false),
            ],
            problems: Vec::new(),
        };
        assert_eq!(
            render_ticket_table(&listed),
            [
                "TICKET       STATUS             LAST RUN  TITLE",
                "jira:ENG-1   Ready for Agent *            Fix<U+001B>[2J",
                "jira:ENG-12  完了                         Grüße",
            ]
        );
    }
}

//! `journeyman list-tickets`: what there is to do, as a table or to choose from.

mod menu;
mod question;

use std::{io::IsTerminal, process::ExitCode};

use console::{measure_text_width, truncate_str};
use ingest::api::types::{RunView, TicketLine, TicketsQuery, TicketsView};

use super::{say, say_error, say_json};
use crate::{
    api::Client,
    args::{Format, ListTickets},
};

/// Widest status and last run in columns of a terminal.
const CELL: usize = 28;

pub(super) async fn run(asked: ListTickets) -> anyhow::Result<ExitCode> {
    if asked.interactive && !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        say_error("journeyman: --interactive needs a terminal to choose at; without it the list is printed");
        return Ok(ExitCode::from(2));
    }
    let client = Client::from_args(&asked.api)?;
    let query = TicketsQuery {
        status: asked.status,
        repository: asked.repository.map(|repository| repository.to_string()),
    };
    let listed = client.tickets(&query).await?;
    for problem in &listed.problems {
        say_error(&format!(
            "journeyman: {}: {}",
            problem.repository, problem.problem
        ));
    }
    let is_whole = listed.problems.is_empty();
    if asked.interactive {
        return menu::run(&client, listed.tickets).await;
    }
    match asked.output {
        Format::Json => say_json(&listed)?,
        Format::Text => table(&listed).iter().for_each(|line| say(line)),
    }
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// One line for each ticket, below a line with the names of the columns.
fn table(listed: &TicketsView) -> Vec<String> {
    let names = ["TICKET", "STATUS", "LAST RUN", "TITLE"].map(str::to_owned);
    let rows = listed.tickets.iter().map(row);
    let rows: Vec<[String; 4]> = std::iter::once(names).chain(rows).collect();
    let widths = [0, 1, 2].map(|column| {
        rows.iter()
            .map(|row| measure_text_width(&row[column]))
            .max()
            .unwrap_or(0)
    });
    let line = |row: &[String; 4]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| padded(cell, width));
        let line: String = cells.chain([row[3].clone()]).collect();
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn padded(cell: &str, width: usize) -> String {
    let gap = width.saturating_sub(measure_text_width(cell));
    format!("{cell}{}", " ".repeat(gap + 2))
}

fn row(ticket: &TicketLine) -> [String; 4] {
    let asks = if ticket.asks { " *" } else { "" };
    let shown = |text: &str| domain::text::visible(text);
    [
        shown(&ticket.ticket),
        format!("{}{asks}", truncate_str(&shown(&ticket.status), CELL, "…")),
        ticket.run.as_ref().map(state).unwrap_or_default(),
        shown(&ticket.summary),
    ]
}

/// What became of a run, or how far it is.
fn state(run: &RunView) -> String {
    let status = serde_json::to_value(run.status).unwrap_or_default();
    let stop = run.stop.as_ref().map(domain::StopReason::as_str);
    let state = stop.or(run.waits_for.as_deref()).or(status.as_str());
    format!("{} {}", run.job, state.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other_whatever_a_title_or_status_holds() {
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
            table(&listed),
            [
                "TICKET       STATUS             LAST RUN  TITLE",
                "jira:ENG-1   Ready for Agent *            Fix<U+001B>[2J",
                "jira:ENG-12  完了                         Grüße",
            ]
        );
    }
}

//! Preview of the work on the tickets of the last week. It starts nothing.

use std::{collections::BTreeMap, process::ExitCode};

use api::{
    Client, Error, build_implement_job,
    types::{TicketLine, TicketsQuery},
};
use domain::{TicketKey, cause::format_error_chain};
use futures::{StreamExt as _, stream};

use super::super::{list_tickets::print_list_problems, print_result};
use crate::exit_codes::derive_exit_code;

const DAYS: u32 = 7;
// Tickets that are tried, each with several requests to its tracker.
const MOST_TRIED: usize = 100;
const AT_ONCE: usize = 4;
// Examples for each repository, and of tickets that are left alone.
const EXAMPLES: usize = 3;

/// Result of a ticket's dry run.
enum TicketForecast {
    /// Work in this repository.
    Work { repository: String, line: String },
    /// No work, for this reason.
    Left { line: String },
    /// Unknown, because the tracker or the API failed.
    Failed { line: String },
}

/// Prints the work that a request on each ticket of the last week would have started.
pub(super) async fn preview_week(client: &Client) -> anyhow::Result<ExitCode> {
    let query = TicketsQuery {
        days: Some(DAYS),
        ..TicketsQuery::default()
    };
    let listed = client.tickets().list(&query).await?;
    print_list_problems(&listed.problems);
    let tried = listed.tickets.iter().take(MOST_TRIED);
    let forecasts: Vec<TicketForecast> = stream::iter(tried)
        .map(|ticket| forecast_ticket(client, ticket))
        .buffered(AT_ONCE)
        .collect()
        .await;
    for line in render_week(&forecasts, listed.tickets.len()) {
        print_result(&line);
    }
    let has_failed = forecasts
        .iter()
        .any(|forecast| matches!(forecast, TicketForecast::Failed { .. }));
    Ok(derive_exit_code(listed.problems.is_empty() && !has_failed))
}

async fn forecast_ticket(client: &Client, ticket: &TicketLine) -> TicketForecast {
    let (name, status) = (&ticket.ticket, &ticket.status);
    let key: TicketKey = match name.parse() {
        Ok(key) => key,
        Err(invalid) => {
            let line = format!("{name} ({status}): {}", format_error_chain(&invalid));
            return TicketForecast::Failed { line };
        }
    };
    match client.jobs().plan(&build_implement_job(&key)).await {
        Ok(planned) => TicketForecast::Work {
            repository: planned.repository,
            line: format!("{name} ({status}): {}", ticket.summary),
        },
        Err(error) => judge_refusal(&error, &format!("{name} ({status})")),
    }
}

/// Forecast of a ticket whose dry run has no plan. An error of one ticket says nothing about the others.
fn judge_refusal(error: &Error, ticket: &str) -> TicketForecast {
    let line = format!("{ticket}: {}", format_error_chain(error));
    match error {
        Error::Refused { status, .. } if status.is_server_error() => TicketForecast::Failed { line },
        Error::Refused { .. } | Error::Needless(_) => TicketForecast::Left { line },
        Error::Client(_)
        | Error::Unreachable { .. }
        | Error::UnknownToken
        | Error::NotUnderstood(_)
        | Error::Lost(_)
        | Error::BrokenOff
        | Error::Events(_) => TicketForecast::Failed { line },
    }
}

/// Lines with the work of each repository, then the tickets that are left alone or have failed. `listed`: number of tickets
/// that changed.
fn render_week(forecasts: &[TicketForecast], listed: usize) -> Vec<String> {
    let mut work: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut left: Vec<&str> = Vec::new();
    let mut failed: Vec<&str> = Vec::new();
    for forecast in forecasts {
        match forecast {
            TicketForecast::Work { repository, line } => work.entry(repository).or_default().push(line),
            TicketForecast::Left { line } => left.push(line),
            TicketForecast::Failed { line } => failed.push(line),
        }
    }
    let started: usize = work.values().map(Vec::len).sum();
    let mut lines = vec![format!(
        "week     {} changed in the last {DAYS} days; {started} would have started work if a user had asked",
        count_tickets(listed)
    )];
    if forecasts.len() < listed {
        lines.push(format!("         the latest {} were tried", forecasts.len()));
    }
    for (repository, tickets) in &work {
        lines.push(format!("work     {repository}: {}", count_tickets(tickets.len())));
        add_examples(&mut lines, tickets);
    }
    for (label, tickets) in [("left  ", &left), ("failed", &failed)] {
        if !tickets.is_empty() {
            lines.push(format!("{label}   {}", count_tickets(tickets.len())));
            add_examples(&mut lines, tickets);
        }
    }
    lines
}

fn add_examples(lines: &mut Vec<String>, tickets: &[&str]) {
    let shown = tickets.iter().take(EXAMPLES);
    lines.extend(shown.map(|ticket| format!("         {ticket}")));
    if tickets.len() > EXAMPLES {
        lines.push(format!("         and {} more", tickets.len() - EXAMPLES));
    }
}

fn count_tickets(count: usize) -> String {
    match count {
        1 => "1 ticket".to_owned(),
        count => format!("{count} tickets"),
    }
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::*;

    fn build_work(repository: &str, line: &str) -> TicketForecast {
        TicketForecast::Work {
            repository: repository.to_owned(),
            line: line.to_owned(),
        }
    }

    #[test]
    fn failure_of_tracker_is_no_refusal() {
        let refused = |status| Error::Refused {
            status,
            name: String::new(),
            detail: "Jira does not answer".to_owned(),
        };
        let judge = |error: &Error| judge_refusal(error, "jira:ENG-1 (Done)");
        let TicketForecast::Failed { line } = judge(&refused(StatusCode::BAD_GATEWAY)) else {
            panic!("the tracker failed")
        };
        assert_eq!(line, "jira:ENG-1 (Done): Jira does not answer");
        for left in [refused(StatusCode::CONFLICT), Error::Needless("done".to_owned())] {
            assert!(matches!(judge(&left), TicketForecast::Left { .. }), "{left}");
        }
        assert!(matches!(
            judge(&Error::UnknownToken),
            TicketForecast::Failed { .. }
        ));
    }

    #[test]
    fn week_is_summarized_by_repository() {
        let mut forecasts: Vec<TicketForecast> = (1..=5)
            .map(|number| build_work("acme/shop", &format!("jira:ENG-{number} (Done): Fix")))
            .collect();
        forecasts.push(build_work("acme/docs", "jira:ENG-6 (To Do): Explain"));
        forecasts.push(TicketForecast::Left {
            line: "jira:ENG-7 (To Do): its label skip-dispatch".to_owned(),
        });
        forecasts.push(judge_refusal(&Error::BrokenOff, "jira:ENG-8 (To Do)"));
        assert_eq!(
            render_week(&forecasts, 9),
            [
                "week     9 tickets changed in the last 7 days; 6 would have started work if a user had asked",
                "         the latest 8 were tried",
                "work     acme/docs: 1 ticket",
                "         jira:ENG-6 (To Do): Explain",
                "work     acme/shop: 5 tickets",
                "         jira:ENG-1 (Done): Fix",
                "         jira:ENG-2 (Done): Fix",
                "         jira:ENG-3 (Done): Fix",
                "         and 2 more",
                "left     1 ticket",
                "         jira:ENG-7 (To Do): its label skip-dispatch",
                "failed   1 ticket",
                "         jira:ENG-8 (To Do): the events of the API broke off",
            ]
        );
        assert_eq!(
            render_week(&[], 0),
            ["week     0 tickets changed in the last 7 days; 0 would have started work if a user had asked"]
        );
    }
}

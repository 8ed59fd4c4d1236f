//! Orders: stop and retry, for one run or ticket, or for several runs.

use std::collections::BTreeSet;

use api::{Client, types::RunsQuery};
use axum::{
    Form,
    extract::Path,
    response::{IntoResponse, Redirect, Response},
};
use domain::{RunId, TicketKey};
use maud::{Markup, html};

use crate::{
    chips::{ChipTone, render_chip},
    layout::{ConsolePage, NavigationEntry},
    person::SignedInPerson,
    problem::{PageProblem, describe_api_error},
    words::{make_visible, run_path, ticket_path},
};

/// Result of an order for one run or ticket.
pub(super) struct OrderOutcome {
    pub(super) what: String,
    pub(super) path: String,
    pub(super) outcome: Result<(), String>,
}

pub(super) async fn stop_ticket(
    SignedInPerson(client): SignedInPerson,
    Path(key): Path<String>,
) -> Result<Redirect, PageProblem> {
    client.tickets().stop(&key.parse()?).await?;
    Ok(Redirect::to(&ticket_path(&key)))
}

pub(super) async fn retry_ticket(
    SignedInPerson(client): SignedInPerson,
    Path(key): Path<String>,
) -> Result<Redirect, PageProblem> {
    client.tickets().retry(&key.parse()?).await?;
    Ok(Redirect::to(&ticket_path(&key)))
}

/// Applies an order to each chosen run, and renders the results.
pub(super) async fn of_many(
    SignedInPerson(client): SignedInPerson,
    Form(fields): Form<Vec<(String, String)>>,
) -> Result<Response, PageProblem> {
    let chosen = fields
        .iter()
        .filter(|(name, _)| name == "run")
        // A page lists fewer runs than this, so a longer form is not from this console.
        .take(RunsQuery::MOST);
    let chosen = chosen.map(|(_, id)| id.parse::<RunId>());
    let chosen: Vec<RunId> = chosen
        .collect::<Result<_, _>>()
        .map_err(|_| PageProblem::Form("One of the chosen runs has an invalid id."))?;
    if chosen.is_empty() {
        return Err(PageProblem::Form("Choose at least one run."));
    }
    let order = fields.iter().find(|(name, _)| name == "order");
    let done = match order.map(|(_, order)| order.as_str()) {
        Some("stop") => stop_runs(&client, &chosen).await?,
        Some("retry") => retry_tickets(&client, &chosen).await?,
        Some(_) | None => return Err(PageProblem::Form("There is no such order.")),
    };
    Ok(ConsolePage::new(
        NavigationEntry::Runs,
        "Result of your order",
        render_outcomes(&done),
    )
    .into_response())
}

async fn stop_runs(client: &Client, chosen: &[RunId]) -> Result<Vec<OrderOutcome>, PageProblem> {
    let mut done = Vec::new();
    for run in chosen {
        let id = run.to_string();
        // One after the other: the results are listed in order, and the API gets no burst.
        let outcome = convert_outcome(client.runs().stop(run).await)?;
        done.push(OrderOutcome {
            path: run_path(&id),
            what: id,
            outcome,
        });
    }
    Ok(done)
}

/// Retries the tickets of the chosen runs. The API retries tickets, so several runs of a ticket cause one retry.
async fn retry_tickets(client: &Client, chosen: &[RunId]) -> Result<Vec<OrderOutcome>, PageProblem> {
    let tickets: BTreeSet<String> = chosen.iter().map(|run| run.ticket().to_string()).collect();
    let mut done = Vec::new();
    for key in tickets {
        let ticket: TicketKey = key.parse()?;
        let outcome = convert_outcome(client.tickets().retry(&ticket).await)?;
        done.push(OrderOutcome {
            path: ticket_path(&key),
            what: key,
            outcome,
        });
    }
    Ok(done)
}

/// Converts a refusal into the result of one order. An unknown token ends the whole request.
fn convert_outcome(outcome: Result<(), api::Error>) -> Result<Result<(), String>, PageProblem> {
    match outcome {
        Err(api::Error::UnknownToken) => Err(PageProblem::Ended),
        outcome => Ok(outcome.map_err(|refused| describe_api_error(&refused).1)),
    }
}

pub(super) fn render_outcomes(done: &[OrderOutcome]) -> Markup {
    html! {
        ul.rows.card {
            @for one in done {
                li {
                    a.item href=(one.path) { (make_visible(&one.what)) } ": "
                    @match &one.outcome {
                        Ok(()) => (render_chip(ChipTone::Good, "done")),
                        Err(why) => (render_chip(ChipTone::Bad, why)),
                    }
                }
            }
        }
        p { a href="/runs" { "To the runs" } }
    }
}

//! Runs: the newest first, with filters in the address, and orders for several at once.

use api::types::{RunState, RunView, RunsQuery};
use axum::extract::Query;
use domain::TicketKey;
use maud::{Markup, html};
use serde::Deserialize;

use crate::{
    layout::{Page, Place},
    person::Person,
    problem::Problem,
    words::{instant, run_path, shown, standing, ticket_path},
};

/// What to list; what is empty does not count.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Filter {
    pub(super) ticket: String,
    pub(super) status: String,
    pub(super) job: String,
}

pub(super) async fn show(person: Person, Query(filter): Query<Filter>) -> Result<Page, Problem> {
    let Person(client) = person;
    let ticket = match filter.ticket.trim() {
        "" => None,
        text => Some(key(text)?),
    };
    let asked = RunsQuery {
        ticket: ticket.map(|ticket| ticket.to_string()),
        limit: Some(RunsQuery::MOST),
        ..RunsQuery::default()
    };
    let runs = client.list_runs(&asked).await?;
    Ok(Page::new(Place::Runs, "Runs", body(&filter, &runs)))
}

/// `ENG-12` means `jira:ENG-12`.
pub(super) fn key(text: &str) -> Result<TicketKey, Problem> {
    TicketKey::written(text)
        .map_err(|_| Problem::Form("That is no ticket: write ENG-12, jira:ENG-12 or github:acme/shop#7."))
}

pub(super) fn body(filter: &Filter, runs: &[RunView]) -> Markup {
    let wanted: Vec<_> = runs.iter().filter(|run| filter.wants(run)).collect();
    html! {
        (filter.form())
        @if wanted.is_empty() {
            p { "No run fits." }
        } @else {
            form method="post" action="/runs" {
                (table(&wanted, true))
                div.actions {
                    button name="order" value="stop" { "Stop the chosen runs" }
                    button name="order" value="retry" { "Try the tickets of the chosen runs again" }
                }
            }
        }
    }
}

impl Filter {
    fn wants(&self, run: &RunView) -> bool {
        let fits = |wanted: &str, is: &str| wanted.is_empty() || wanted == is;
        fits(&self.status, run.status.as_str()) && fits(&self.job, run.job.as_str())
    }

    fn form(&self) -> Markup {
        html! {
            form.row method="get" action="/runs" role="search" aria-label="Filter" {
                div { label for="ticket" { "Ticket" } input id="ticket" name="ticket" value=(shown(&self.ticket)); }
                div {
                    label for="status" { "State" }
                    select id="status" name="status" {
                        option value="" { "any" }
                        @for one in RunState::ALL {
                            option value=(one.as_str()) selected[self.status == one.as_str()] { (one.as_str()) }
                        }
                    }
                }
                div {
                    label for="job" { "Job" }
                    select id="job" name="job" {
                        option value="" { "any" }
                        @for job in domain::Job::ALL {
                            option value=(job) selected[self.job == job.as_str()] { (job) }
                        }
                    }
                }
                button { "Filter" }
            }
        }
    }
}

/// A table of runs.
pub(super) fn table(runs: &[&RunView], choose: bool) -> Markup {
    html! {
        table.stack {
            caption { (runs.len()) " runs, the newest first" }
            thead {
                tr {
                    @if choose { th scope="col" { "Choose" } }
                    th scope="col" { "Run" }
                    th scope="col" { "Job" }
                    th scope="col" { "Stands" }
                    th scope="col" { "Began" }
                    th.number scope="col" { "Turns" }
                }
            }
            tbody { @for run in runs { (row(run, choose)) } }
        }
    }
}

fn row(run: &RunView, choose: bool) -> Markup {
    let (stands, tone) = standing(run);
    html! {
        tr {
            @if choose {
                td data-name="Choose" {
                    input type="checkbox" name="run" value=(run.id) aria-label={ "Choose " (shown(&run.id)) };
                }
            }
            th scope="row" {
                a href=(run_path(&run.id)) { (shown(&run.id)) }
                @if choose { " " a.soft href=(ticket_path(&run.ticket)) aria-label={ "Ticket " (shown(&run.ticket)) } { "ticket" } }
            }
            td data-name="Job" { (run.job) }
            td data-name="Stands" { span class=(tone) { (stands) } }
            td data-name="Began" { (instant(&run.started_at)) }
            td.number data-name="Turns" { (run.turns) }
        }
    }
}

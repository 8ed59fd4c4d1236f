//! Costs: tokens and money of models, by repository, model, job, ticket and day.

use std::cmp::Reverse;

use api::types::{SpendLine, SpendQuery, SpendTotal, SpendView};
use axum::extract::Query;
use domain::{Dollars, text::group_digits};
use maud::{Markup, html};
use serde::Deserialize;

use super::list_filter::trim_field;
use crate::{
    charts::{BarPart, BarTone, DayBar, render_day_chart},
    layout::{ConsolePage, NavigationEntry},
    person::SignedInPerson,
    problem::PageProblem,
    words::{format_instant, format_money, format_quantity, make_visible},
};

// Number of tickets in their table: those with the highest cost.
const TICKETS: usize = 100;

/// Period of the page; by default the current month.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CostsQuery {
    pub(super) since: String,
    pub(super) until: String,
}

pub(super) async fn show_costs(
    SignedInPerson(client): SignedInPerson,
    Query(asked): Query<CostsQuery>,
) -> Result<ConsolePage, PageProblem> {
    let query = SpendQuery {
        since: trim_field(&asked.since),
        until: trim_field(&asked.until),
        from: None,
    };
    let spent = client.installation().spend(&query).await?;
    Ok(ConsolePage::new(
        NavigationEntry::Costs,
        "Costs",
        render_costs(&asked, &spent),
    ))
}

pub(super) fn render_costs(asked: &CostsQuery, spent: &SpendView) -> Markup {
    html! {
        form.row method="get" action="/costs" {
            div { label for="since" { "From the day" } input id="since" name="since" type="date" value=(make_visible(&asked.since)); }
            div { label for="until" { "Before the day" } input id="until" name="until" type="date" value=(make_visible(&asked.until)); }
            button { "Show" }
        }
        p.soft { "From " (format_instant(&spent.since)) " to " (format_instant(&spent.until)) ", counted from the journals that are kept." }
        @if spent.lines.is_empty() {
            div.empty {
                strong { "No model was called in this period." }
                "The cost of each reply of a model appears here, summed by repository, model, job, ticket and day."
            }
        } @else {
            (render_daily_cost(spent))
            (render_sums_by("Repository", spent, |line| line.repository.as_str()))
            (render_sums_by("Model", spent, |line| line.model.as_str()))
            (render_sums_by("Job", spent, |line| line.job.as_str()))
            (render_sums_by_ticket(spent))
            (render_sums_by("Day", spent, |line| line.day.as_str()))
        }
    }
}

fn render_daily_cost(spent: &SpendView) -> Markup {
    let total = spent.sum_by(|_| "").into_values().next().unwrap_or_default();
    let bar = |(day, sum): (&str, SpendTotal)| DayBar {
        day: make_visible(day),
        words: format_money(sum.cost_usd, sum.unpriced),
        parts: vec![BarPart {
            tone: BarTone::Plain,
            value: sum.cost_usd.micros(),
        }],
    };
    let days = spent.sum_by(|line| line.day.as_str());
    let bars: Vec<_> = days.into_iter().map(bar).collect();
    html! {
        section.card aria-label="Total" {
            dl.figures {
                div { dt { "Cost" } dd { (format_money(total.cost_usd, total.unpriced)) } }
                div { dt { "Replies" } dd { (group_digits(total.calls)) } }
                div { dt { "Tokens in and out" } dd { (group_digits(total.tokens)) } }
            }
            (render_day_chart("Cost by day with a reply", &bars))
        }
    }
}

fn render_sums_by<'a>(name: &str, spent: &'a SpendView, of: impl Fn(&'a SpendLine) -> &'a str) -> Markup {
    let sums: Vec<_> = spent.sum_by(of).into_iter().collect();
    render_sums(name, &sums, &html! {})
}

/// Renders the tickets with the highest cost, and a line about the others.
fn render_sums_by_ticket(spent: &SpendView) -> Markup {
    let sums = spent.sum_by(|line| line.ticket.as_str());
    let mut sums: Vec<_> = sums.into_iter().collect();
    // Tickets of the same cost keep the order of their keys.
    sums.sort_by_key(|(_, sum)| Reverse(sum.cost_usd));
    let left_out = sums.split_off(sums.len().min(TICKETS));
    let cost = left_out
        .iter()
        .fold(Dollars::default(), |cost, (_, sum)| cost.plus(sum.cost_usd));
    let unpriced: u64 = left_out.iter().map(|(_, sum)| sum.unpriced).sum();
    let note = html! {
        @if !left_out.is_empty() {
            p {
                (format_quantity(left_out.len(), "more ticket")) " of lower cost: " (format_money(cost, unpriced)) ". "
                code { "journeyman spend --by ticket" } " lists all of them."
            }
        }
    };
    render_sums("Ticket", &sums, &note)
}

fn render_sums(name: &str, sums: &[(&str, SpendTotal)], note: &Markup) -> Markup {
    html! {
        section.card aria-label={ "Cost by " (name.to_lowercase()) } {
            h2 { "By " (name.to_lowercase()) }
            table.stack {
                caption { (name) ", replies, tokens (cached ones included) and money" }
                thead {
                    tr {
                        th scope="col" { (name) }
                        th.number scope="col" { "Replies" }
                        th.number scope="col" { "Tokens in and out" }
                        th.number scope="col" { "Cost" }
                    }
                }
                tbody {
                    @for (key, sum) in sums {
                        tr {
                            th scope="row" { @if key.is_empty() { "not known" } @else { (make_visible(key)) } }
                            td.number data-name="Replies" { (group_digits(sum.calls)) }
                            td.number data-name="Tokens in and out" { (group_digits(sum.tokens)) }
                            td.number data-name="Cost" { (format_money(sum.cost_usd, sum.unpriced)) }
                        }
                    }
                }
            }
            (note)
        }
    }
}

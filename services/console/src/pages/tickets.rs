//! Tickets with runs, most recently requested first, with filters in the address.

use api::types::{TicketStanding, TicketSummariesQuery, TicketSummary};
use axum::extract::Query;
use domain::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    list_filter::{
        SavedFilter, build_list_path, build_page_path, render_page_links, render_saved_filters, trim_field,
    },
    overview::name_ticket,
};
use crate::{
    chips::{describe_evidence_level, render_pull_request_lines, render_standing_chip},
    layout::{ConsolePage, NavigationEntry, SearchField},
    moments::render_moment,
    person::SignedInPerson,
    problem::PageProblem,
    words::{format_elapsed, format_money, format_quantity, make_visible, ticket_path},
};

// Number of tickets on one page.
const PAGE: usize = 100;
const SAVED: [SavedFilter; 8] = [
    SavedFilter {
        name: "All",
        fields: &[],
    },
    SavedFilter {
        name: "Needs a person",
        fields: &[("standing", "needs_person")],
    },
    SavedFilter {
        name: "Failed",
        fields: &[("standing", "failed")],
    },
    SavedFilter {
        name: "Working",
        fields: &[("standing", "working")],
    },
    SavedFilter {
        name: "In review",
        fields: &[("standing", "open")],
    },
    SavedFilter {
        name: "Merged",
        fields: &[("standing", "merged")],
    },
    SavedFilter {
        name: "Closed",
        fields: &[("standing", "closed")],
    },
    SavedFilter {
        name: "Done",
        fields: &[("standing", "done")],
    },
];

/// Filter of the list; empty fields do not count.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TicketFilter {
    /// Text of the search field.
    pub(super) q: String,
    pub(super) repository: String,
    pub(super) standing: String,
    /// The last run of the previous page's last ticket.
    pub(super) before: String,
}

pub(super) async fn show_tickets(
    SignedInPerson(client): SignedInPerson,
    Query(filter): Query<TicketFilter>,
) -> Result<ConsolePage, PageProblem> {
    let mut tickets = client.tickets().summaries(&filter.build_query()?).await?;
    // The limit is one ticket more than the page shows: an extra ticket means that another page follows.
    let is_more = tickets.len() > PAGE;
    tickets.truncate(PAGE);
    let body = render_tickets(&filter, &tickets, is_more, bootstrap::read_wall_clock());
    Ok(ConsolePage::new(NavigationEntry::Tickets, "Tickets", body).with_search(filter.search()))
}

impl TicketFilter {
    fn build_query(&self) -> Result<TicketSummariesQuery, PageProblem> {
        let standing = trim_field(&self.standing).map(|text| {
            TicketStanding::ALL
                .into_iter()
                .find(|known| known.as_str() == text)
        });
        if standing == Some(None) {
            return Err(PageProblem::Form("There is no such state of a ticket."));
        }
        Ok(TicketSummariesQuery {
            repository: trim_field(&self.repository),
            standing: standing.flatten(),
            search: trim_field(&self.q),
            before: trim_field(&self.before),
            limit: Some(PAGE + 1),
        })
    }

    /// Fields of the filter except for the search and the page.
    fn fields(&self) -> [(&'static str, &str); 2] {
        [("repository", &self.repository), ("standing", &self.standing)]
    }

    fn search(&self) -> SearchField {
        let kept = self.fields().map(|(name, value)| (name, value.to_owned()));
        SearchField {
            text: self.q.clone(),
            kept: kept.to_vec(),
            ..SearchField::default()
        }
    }

    /// Returns the address of another page of the same list.
    fn path(&self, before: &str) -> String {
        build_page_path("/tickets", &self.q, &self.fields(), before)
    }
}

pub(super) fn render_tickets(
    filter: &TicketFilter,
    tickets: &[TicketSummary],
    is_more: bool,
    now: Timestamp,
) -> Markup {
    let is_filtered = filter.path("") != "/tickets";
    let newest = (!filter.before.is_empty()).then(|| filter.path(""));
    let older = tickets
        .last()
        .filter(|_| is_more)
        .map(|last| filter.path(&last.last_run.id));
    html! {
        (render_saved_filters("/tickets", &SAVED, &filter.fields(), &filter.q))
        @if !filter.repository.is_empty() {
            p { "In " (make_visible(&filter.repository)) ". " a href="/tickets" { "All repositories" } }
        }
        @if tickets.is_empty() { (render_no_ticket(is_filtered)) } @else { div.card { (render_ticket_table(tickets, now)) } }
        (render_page_links("More tickets", newest.as_deref(), older.as_deref()))
    }
}

fn render_no_ticket(is_filtered: bool) -> Markup {
    html! {
        div.empty {
            @if is_filtered {
                strong { "No ticket fits." }
                a href="/tickets" { "Show all tickets" }
            } @else {
                strong { "No ticket has a run yet." }
                "Every ticket that Journeyman works on appears here. Move one to the status that asks for work, or start it with "
                code { "journeyman process-ticket KEY" } "."
            }
        }
    }
}

fn render_ticket_table(tickets: &[TicketSummary], now: Timestamp) -> Markup {
    html! {
        table.stack {
            caption { (format_quantity(tickets.len(), "ticket")) ", the newest request first" }
            thead {
                tr {
                    th scope="col" { "Ticket" }
                    th scope="col" { "State" }
                    th scope="col" { "Repository" }
                    th scope="col" { "Pull request" }
                    th scope="col" { "Evidence" }
                    th scope="col" { "Person" }
                    th.number scope="col" { "Cost" }
                    th.number scope="col" { "Duration" }
                    th scope="col" { "Last run" }
                }
            }
            tbody { @for ticket in tickets { (render_ticket_row(ticket, now)) } }
        }
    }
}

fn render_ticket_row(ticket: &TicketSummary, now: Timestamp) -> Markup {
    let start = Timestamp::parse(&ticket.started_at);
    let end = ticket.finished_at.as_deref().map_or(Some(now), Timestamp::parse);
    html! {
        tr {
            th scope="row" {
                a.item href=(ticket_path(&ticket.ticket)) { (name_ticket(ticket)) }
                div.meta { span { (make_visible(&ticket.ticket)) } }
            }
            td data-name="State" { (render_standing_chip(ticket.standing)) }
            td.none[ticket.repository.is_none()] data-name="Repository" {
                @if let Some(repository) = &ticket.repository {
                    a href=(build_list_path("/tickets", &[("repository", repository.as_str())])) { (make_visible(repository)) }
                }
            }
            td.none[ticket.pull_requests.is_empty()] data-name="Pull request" { (render_pull_request_lines(&ticket.pull_requests)) }
            td.none[ticket.evidence.is_none()] data-name="Evidence" {
                @if let Some(level) = &ticket.evidence { (describe_evidence_level(level)) }
            }
            td.none[ticket.actor.is_none()] data-name="Person" {
                @if let Some(actor) = &ticket.actor { (make_visible(actor)) }
            }
            td.number data-name="Cost" { (format_money(ticket.cost_usd, ticket.unpriced)) }
            td.number data-name="Duration" {
                @if let (Some(start), Some(end)) = (start, end) { (format_elapsed(start, end)) } @else { "unknown" }
            }
            td data-name="Last run" { (render_moment(&ticket.last_run.started_at, now)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticket_filter_becomes_api_query_plus_one() {
        let filter = TicketFilter {
            q: " cart ".to_owned(),
            standing: "failed".to_owned(),
            before: "jira:ENG-1@3".to_owned(),
            ..TicketFilter::default()
        };
        let query = filter.build_query().unwrap();
        assert_eq!(
            (query.search.as_deref(), query.repository.as_deref()),
            (Some("cart"), None)
        );
        assert_eq!(query.standing, Some(TicketStanding::Failed));
        assert_eq!(
            (query.before.as_deref(), query.limit),
            (Some("jira:ENG-1@3"), Some(PAGE + 1))
        );
        let odd = TicketFilter {
            standing: "odd".to_owned(),
            ..TicketFilter::default()
        };
        assert!(matches!(odd.build_query(), Err(PageProblem::Form(_))));
    }

    #[test]
    fn saved_filters_are_states_of_api() {
        for saved in &SAVED[1..] {
            let filter = TicketFilter {
                standing: saved.fields[0].1.to_owned(),
                ..TicketFilter::default()
            };
            assert!(filter.build_query().is_ok(), "{}", saved.name);
        }
        assert_eq!(SAVED.len(), TicketStanding::ALL.len() + 1);
    }

    #[test]
    fn empty_list_names_the_first_step() {
        let now = Timestamp::default();
        let first = render_tickets(&TicketFilter::default(), &[], false, now).into_string();
        assert!(
            first.contains("No ticket has a run yet.") && first.contains("process-ticket"),
            "{first}"
        );
        let filter = TicketFilter {
            q: "nowhere".to_owned(),
            ..TicketFilter::default()
        };
        let none = render_tickets(&filter, &[], false, now).into_string();
        assert!(none.contains("No ticket fits."), "{none}");
    }
}

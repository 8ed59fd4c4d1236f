//! Runs, newest first, with filters in the address, and orders for several runs.

use api::types::{RunState, RunView, RunsQuery};
use axum::extract::Query;
use domain::{TicketKey, Timestamp};
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    list_filter::{SavedFilter, build_page_path, render_page_links, render_saved_filters, trim_field},
    overview::name_run,
};
use crate::{
    chips::{describe_evidence_level, render_pull_request_lines, render_run_chip},
    layout::{ConsolePage, NavigationEntry, SearchField},
    moments::render_moment,
    person::SignedInPerson,
    problem::PageProblem,
    words::{format_elapsed, format_overview_cost, format_quantity, make_visible, run_path, ticket_path},
};

// Number of runs on one page.
const PAGE: usize = 100;
// Values of the combined state field: conditions of parked runs and ends of finished runs.
const STANDS: [(&str, &str); 6] = [
    ("waits_for=person", "waits for a person"),
    ("waits_for=report", "waits until something is written outside"),
    ("waits_for=retry", "waits to try again"),
    ("waits_for=slot", "waits for a free place"),
    ("stop=completed", "completed"),
    ("stop=failed", "ended otherwise"),
];
const SAVED: [SavedFilter; 5] = [
    SavedFilter {
        name: "All",
        fields: &[],
    },
    SavedFilter {
        name: "Waits for a person",
        fields: &[("waits_for", "person")],
    },
    SavedFilter {
        name: "Works",
        fields: &[("status", "active")],
    },
    SavedFilter {
        name: "Completed",
        fields: &[("stop", "completed")],
    },
    SavedFilter {
        name: "Ended otherwise",
        fields: &[("stop", "failed")],
    },
];

/// Filter of the list; empty fields do not count. The fields have the API's names, so a page's address is its
/// request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RunFilter {
    /// Text of the search field.
    pub(super) q: String,
    pub(super) ticket: String,
    pub(super) repository: String,
    pub(super) status: String,
    pub(super) job: String,
    /// Value of the combined state field, as the form sends it.
    pub(super) stands: String,
    pub(super) waits_for: String,
    pub(super) stop: String,
    /// The last run of the previous page.
    pub(super) before: String,
}

pub(super) async fn show_runs(
    person: SignedInPerson,
    Query(filter): Query<RunFilter>,
) -> Result<ConsolePage, PageProblem> {
    let SignedInPerson(client) = person;
    let filter = filter.opened();
    let mut runs = client.runs().list(&filter.asked()?).await?;
    // The limit is one run more than the page shows: an extra run means that another page follows.
    let is_more = runs.len() > PAGE;
    runs.truncate(PAGE);
    let body = render_runs(&filter, &runs, is_more, bootstrap::read_wall_clock());
    Ok(ConsolePage::new(NavigationEntry::Runs, "Runs", body).with_search(filter.search()))
}

/// Parses a ticket key. `ENG-12` means `jira:ENG-12`.
pub(super) fn parse_ticket_key(text: &str) -> Result<TicketKey, PageProblem> {
    TicketKey::written(text)
        .map_err(|_| PageProblem::Form("That is no ticket: write ENG-12, jira:ENG-12 or github:acme/shop#7."))
}

pub(super) fn render_runs(filter: &RunFilter, runs: &[RunView], is_more: bool, now: Timestamp) -> Markup {
    let newest = (!filter.before.is_empty()).then(|| filter.path(""));
    let older = runs.last().filter(|_| is_more).map(|last| filter.path(&last.id));
    let is_filtered = filter.path("") != "/runs";
    html! {
        (render_saved_filters("/runs", &SAVED, &filter.fields(), &filter.q))
        (filter.form())
        @if runs.is_empty() {
            (render_no_run(is_filtered))
        } @else {
            form.card method="post" action="/runs" {
                (render_run_table(runs, now))
                div.actions {
                    button name="order" value="stop" { "Stop the chosen runs" }
                    button name="order" value="retry" { "Retry the tickets of the chosen runs" }
                }
            }
        }
        (render_page_links("More runs", newest.as_deref(), older.as_deref()))
    }
}

fn render_no_run(is_filtered: bool) -> Markup {
    html! {
        div.empty {
            @if is_filtered {
                strong { "No run fits." }
                a href="/runs" { "Show all runs" }
            } @else {
                strong { "No run yet." }
                "Each piece of work on a ticket is a run: its implementation, a repair, an answer. Start one with "
                code { "journeyman process-ticket KEY" } "."
            }
        }
    }
}

impl RunFilter {
    /// Replaces the combined field of the form by the two fields of the API.
    fn opened(mut self) -> Self {
        let stands = std::mem::take(&mut self.stands);
        match stands.split_once('=') {
            Some(("waits_for", wanted)) => wanted.clone_into(&mut self.waits_for),
            Some(("stop", wanted)) => wanted.clone_into(&mut self.stop),
            Some(_) | None => {}
        }
        self
    }

    fn asked(&self) -> Result<RunsQuery, PageProblem> {
        let ticket = trim_field(&self.ticket)
            .map(|text| parse_ticket_key(&text))
            .transpose()?;
        let status = trim_field(&self.status)
            .map(|text| RunState::ALL.into_iter().find(|state| state.as_str() == text));
        let job =
            trim_field(&self.job).map(|text| domain::Job::ALL.into_iter().find(|job| job.as_str() == text));
        if status == Some(None) || job == Some(None) {
            return Err(PageProblem::Form("There is no such state or job."));
        }
        Ok(RunsQuery {
            ticket: ticket.map(|ticket| ticket.to_string()),
            repository: trim_field(&self.repository),
            status: status.flatten(),
            job: job.flatten(),
            waits_for: trim_field(&self.waits_for),
            stop: trim_field(&self.stop),
            search: trim_field(&self.q),
            before: trim_field(&self.before),
            limit: Some(PAGE + 1),
        })
    }

    /// Fields of the filter except for the search and the page.
    fn fields(&self) -> [(&'static str, &str); 6] {
        [
            ("ticket", &self.ticket),
            ("repository", &self.repository),
            ("status", &self.status),
            ("job", &self.job),
            ("waits_for", &self.waits_for),
            ("stop", &self.stop),
        ]
    }

    fn search(&self) -> SearchField {
        let kept = self.fields().map(|(name, value)| (name, value.to_owned()));
        SearchField {
            action: "/runs",
            label: "Search runs",
            text: self.q.clone(),
            kept: kept.to_vec(),
        }
    }

    /// Returns the address of another page of the same list.
    fn path(&self, before: &str) -> String {
        build_page_path("/runs", &self.q, &self.fields(), before)
    }

    fn form(&self) -> Markup {
        let states = RunState::ALL.map(|state| (state.as_str(), state.as_str()));
        let jobs = domain::Job::ALL.map(|job| (job.as_str(), job.as_str()));
        let stands = match (self.waits_for.as_str(), self.stop.as_str()) {
            ("", "") => String::new(),
            ("", stop) => format!("stop={stop}"),
            (waits_for, _) => format!("waits_for={waits_for}"),
        };
        html! {
            details.card open[self.has_more()] {
                summary { "More filters" }
                form.row method="get" action="/runs" aria-label="Filter" {
                    @if !self.q.is_empty() { input type="hidden" name="q" value=(self.q); }
                    div { label for="ticket" { "Ticket" } input id="ticket" name="ticket" value=(make_visible(&self.ticket)); }
                    div {
                        label for="repository" { "Repository" }
                        input id="repository" name="repository" value=(make_visible(&self.repository));
                    }
                    (render_choice("status", "State", &states, &self.status))
                    (render_choice("stands", "Waits or end", &STANDS, &stands))
                    (render_choice("job", "Job", &jobs, &self.job))
                    button { "Filter" }
                }
            }
        }
    }

    /// Returns true if a field is set that no saved filter sets.
    fn has_more(&self) -> bool {
        let fields = [&self.ticket, &self.repository, &self.job];
        fields.iter().any(|field| !field.is_empty())
    }
}

/// Renders a selection of one value or any.
fn render_choice(name: &str, label: &str, values: &[(&str, &str)], chosen: &str) -> Markup {
    html! {
        div {
            label for=(name) { (label) }
            select id=(name) name=(name) {
                option value="" { "any" }
                @for (value, words) in values { option value=(value) selected[*value == chosen] { (words) } }
            }
        }
    }
}

fn render_run_table(runs: &[RunView], now: Timestamp) -> Markup {
    html! {
        table.stack {
            caption { (format_quantity(runs.len(), "run")) ", the newest first" }
            thead {
                tr {
                    th scope="col" { span.hidden-text { "Choose" } }
                    th scope="col" { "Run" }
                    th scope="col" { "State" }
                    th scope="col" { "Repository" }
                    th scope="col" { "Pull request" }
                    th scope="col" { "Evidence" }
                    th scope="col" { "Person" }
                    th.number scope="col" { "Cost" }
                    th.number scope="col" { "Duration" }
                    th scope="col" { "Began" }
                }
            }
            tbody { @for run in runs { (render_run_row(run, now)) } }
        }
    }
}

fn render_run_row(run: &RunView, now: Timestamp) -> Markup {
    let overview = run.overview.as_ref();
    let repository = overview.and_then(|overview| overview.repository.as_deref());
    let lines = overview.map_or(&[][..], |overview| overview.pull_request_lines.as_slice());
    let evidence = overview.and_then(|overview| overview.evidence.as_deref());
    let actor = overview.and_then(|overview| overview.actor.as_deref());
    html! {
        tr {
            td { input type="checkbox" name="run" value=(run.id) aria-label={ "Choose " (make_visible(&run.id)) }; }
            th scope="row" {
                a.item href=(run_path(&run.id)) { (name_run(run)) }
                div.meta {
                    span { (run.job) }
                    span { a href=(ticket_path(&run.ticket)) { (make_visible(&run.ticket)) } }
                }
            }
            td data-name="State" { (render_run_chip(run)) }
            td.none[repository.is_none()] data-name="Repository" { @if let Some(repository) = repository { (make_visible(repository)) } }
            td.none[lines.is_empty()] data-name="Pull request" { (render_pull_request_lines(lines)) }
            td.none[evidence.is_none()] data-name="Evidence" { @if let Some(level) = evidence { (describe_evidence_level(level)) } }
            td.none[actor.is_none()] data-name="Person" { @if let Some(actor) = actor { (make_visible(actor)) } }
            td.number data-name="Cost" { (format_run_cost(run)) }
            td.number data-name="Duration" { (format_run_duration(run, now)) }
            td data-name="Began" { (render_moment(&run.started_at, now)) }
        }
    }
}

/// Cost of a run; a run that has not begun has none.
pub(super) fn format_run_cost(run: &RunView) -> String {
    run.overview
        .as_ref()
        .map_or_else(|| "none yet".to_owned(), format_overview_cost)
}

/// Time from the request of a run to its end, or to now.
pub(super) fn format_run_duration(run: &RunView, now: Timestamp) -> String {
    let end = run.finished_at.as_deref().map_or(Some(now), Timestamp::parse);
    match (Timestamp::parse(&run.started_at), end) {
        (Some(start), Some(end)) => format_elapsed(start, end),
        (Some(_) | None, _) => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_run_filter(query: &str) -> Result<RunsQuery, PageProblem> {
        let filter: RunFilter = serde_json::from_str(query).unwrap();
        filter.opened().asked()
    }

    #[test]
    fn run_filter_becomes_api_query_plus_one() {
        let query = parse_run_filter(
            r#"{"ticket": "ENG-12", "repository": " acme/shop ", "status": "parked", "job": "implement",
            "stands": "waits_for=person", "before": "jira:ENG-12@57", "q": "cart"}"#,
        )
        .unwrap();
        assert_eq!(query.ticket.as_deref(), Some("jira:ENG-12"));
        assert_eq!(query.repository.as_deref(), Some("acme/shop"));
        assert_eq!(
            (query.status, query.job),
            (Some(RunState::Parked), Some(domain::Job::Implement))
        );
        assert_eq!(
            (query.waits_for.as_deref(), query.stop, query.before.as_deref()),
            (Some("person"), None, Some("jira:ENG-12@57"))
        );
        assert_eq!(
            (query.limit, query.search.as_deref()),
            (Some(PAGE + 1), Some("cart"))
        );
        assert_eq!(
            parse_run_filter(r#"{"stands": "stop=failed"}"#)
                .unwrap()
                .stop
                .as_deref(),
            Some("failed")
        );
        for wrong in [
            r#"{"status": "odd"}"#,
            r#"{"job": "odd"}"#,
            r#"{"ticket": "odd"}"#,
        ] {
            assert!(
                matches!(parse_run_filter(wrong), Err(PageProblem::Form(_))),
                "{wrong}"
            );
        }
    }

    #[test]
    fn next_page_link_keeps_the_filter() {
        let filter = RunFilter {
            repository: "acme/shop".to_owned(),
            stop: "failed".to_owned(),
            before: "old".to_owned(),
            q: "cart".to_owned(),
            ..RunFilter::default()
        };
        assert_eq!(
            filter.path("jira:ENG-1@3"),
            "/runs?q=cart&repository=acme%2Fshop&stop=failed&before=jira%3AENG-1%403"
        );
        assert_eq!(filter.path(""), "/runs?q=cart&repository=acme%2Fshop&stop=failed");
        assert_eq!(RunFilter::default().path(""), "/runs");
    }
}

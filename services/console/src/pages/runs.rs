//! Runs, newest first, with filters in the address, and orders for several runs.

use api::types::{RunState, RunView, RunsQuery};
use axum::extract::Query;
use domain::{TicketKey, address::percent_encode};
use maud::{Markup, html};
use serde::Deserialize;

use crate::{
    layout::{ConsolePage, NavigationEntry},
    person::SignedInPerson,
    problem::PageProblem,
    words::{describe_run_state, format_instant, make_visible, run_path, ticket_path},
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

/// Filter of the list; empty fields do not count. The fields have the API's names, so a page's address is its
/// request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RunFilter {
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
    let mut runs = client.list_runs(&filter.asked()?).await?;
    // The limit is one run more than the page shows: an extra run means that another page follows.
    let is_more = runs.len() > PAGE;
    runs.truncate(PAGE);
    Ok(ConsolePage::new(
        NavigationEntry::Runs,
        "Runs",
        render_runs(&filter, &runs, is_more),
    ))
}

/// Parses a ticket key. `ENG-12` means `jira:ENG-12`.
pub(super) fn parse_ticket_key(text: &str) -> Result<TicketKey, PageProblem> {
    TicketKey::written(text)
        .map_err(|_| PageProblem::Form("That is no ticket: write ENG-12, jira:ENG-12 or github:acme/shop#7."))
}

pub(super) fn render_runs(filter: &RunFilter, runs: &[RunView], is_more: bool) -> Markup {
    let wanted: Vec<_> = runs.iter().collect();
    let last = runs.last().filter(|_| is_more);
    html! {
        (filter.form())
        @if wanted.is_empty() {
            p { "No run fits." }
        } @else {
            form method="post" action="/runs" {
                (render_run_table(&wanted, true))
                div.actions {
                    button name="order" value="stop" { "Stop the chosen runs" }
                    button name="order" value="retry" { "Try the tickets of the chosen runs again" }
                }
            }
        }
        @if last.is_some() || !filter.before.is_empty() {
            nav.actions aria-label="More runs" {
                @if !filter.before.is_empty() { a href=(filter.path("")) { "The newest" } }
                @if let Some(last) = last { a href=(filter.path(&last.id)) rel="next" { "Older ones" } }
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
        let given = |text: &String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let ticket = given(&self.ticket)
            .map(|text| parse_ticket_key(&text))
            .transpose()?;
        let status =
            given(&self.status).map(|text| RunState::ALL.into_iter().find(|state| state.as_str() == text));
        let job = given(&self.job).map(|text| domain::Job::ALL.into_iter().find(|job| job.as_str() == text));
        if status == Some(None) || job == Some(None) {
            return Err(PageProblem::Form("There is no such state or job."));
        }
        Ok(RunsQuery {
            ticket: ticket.map(|ticket| ticket.to_string()),
            repository: given(&self.repository),
            status: status.flatten(),
            job: job.flatten(),
            waits_for: given(&self.waits_for),
            stop: given(&self.stop),
            before: given(&self.before),
            limit: Some(PAGE + 1),
        })
    }

    /// Returns the address of another page of the same list.
    fn path(&self, before: &str) -> String {
        let fields = [
            ("ticket", self.ticket.as_str()),
            ("repository", &self.repository),
            ("status", &self.status),
            ("job", &self.job),
            ("waits_for", &self.waits_for),
            ("stop", &self.stop),
            ("before", before),
        ];
        let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
        let pairs: Vec<_> = given
            .map(|(name, value)| format!("{name}={}", percent_encode(value)))
            .collect();
        match pairs.is_empty() {
            true => "/runs".to_owned(),
            false => format!("/runs?{}", pairs.join("&")),
        }
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
            form.row method="get" action="/runs" role="search" aria-label="Filter" {
                div { label for="ticket" { "Ticket" } input id="ticket" name="ticket" value=(make_visible(&self.ticket)); }
                div {
                    label for="repository" { "Repository" }
                    input id="repository" name="repository" value=(make_visible(&self.repository));
                }
                (render_choice("status", "State", &states, &self.status))
                (render_choice("stands", "Stands", &STANDS, &stands))
                (render_choice("job", "Job", &jobs, &self.job))
                button { "Filter" }
            }
        }
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

/// Renders a table of runs.
pub(super) fn render_run_table(runs: &[&RunView], choose: bool) -> Markup {
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
            tbody { @for run in runs { (render_run_row(run, choose)) } }
        }
    }
}

fn render_run_row(run: &RunView, choose: bool) -> Markup {
    let (state, tone) = describe_run_state(run);
    html! {
        tr {
            @if choose {
                td data-name="Choose" {
                    input type="checkbox" name="run" value=(run.id) aria-label={ "Choose " (make_visible(&run.id)) };
                }
            }
            th scope="row" {
                a href=(run_path(&run.id)) { (make_visible(&run.id)) }
                @if choose { " " a.soft href=(ticket_path(&run.ticket)) aria-label={ "Ticket " (make_visible(&run.ticket)) } { "ticket" } }
            }
            td data-name="Job" { (run.job) }
            td data-name="Stands" { span class=(tone) { (state) } }
            td data-name="Began" { (format_instant(&run.started_at)) }
            td.number data-name="Turns" { (run.turns) }
        }
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
            "stands": "waits_for=person", "before": "jira:ENG-12@57"}"#,
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
        assert_eq!(query.limit, Some(PAGE + 1));
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
            ..RunFilter::default()
        };
        assert_eq!(
            filter.path("jira:ENG-1@3"),
            "/runs?repository=acme%2Fshop&stop=failed&before=jira%3AENG-1%403"
        );
        assert_eq!(filter.path(""), "/runs?repository=acme%2Fshop&stop=failed");
        assert_eq!(RunFilter::default().path(""), "/runs");
    }
}

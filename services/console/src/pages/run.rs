//! A run: how it stands in one sentence, where time and money went, what it changed and proved, and all that happened.

use api::types::RunView;
use axum::{
    extract::{Path, Query},
    response::Response,
};
use domain::{
    Entry, Exit, Fact, Handover, Overview, PhaseOutput, Proof, RunId, RunStatus, Timestamp, Usage, WaitsFor,
};
use maud::{Markup, html};
use serde::Deserialize;

use crate::{
    layout::{Page, Place},
    person::Person,
    problem::Problem,
    timeline,
    words::{
        between, count, detail, duration, heading, money, run_path, shown, standing, ticket_path, tone,
        waiting, web_address,
    },
};

/// Entries that a page shows unless all are asked for.
const SHOWN: usize = 500;

/// Which entries.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    all: bool,
}

/// A run with all that is known of it.
pub(super) struct Known {
    pub(super) id: RunId,
    pub(super) view: RunView,
    pub(super) journal: Vec<Entry>,
}

impl Known {
    pub(super) async fn of(client: &api::Client, id: RunId) -> Result<Self, Problem> {
        let (view, journal) = tokio::join!(client.run(&id), client.journal(&id));
        Ok(Self {
            view: view?,
            journal: journal?,
            id,
        })
    }

    pub(super) fn overview(&self) -> Option<Overview> {
        Overview::of(&self.id, &self.journal)
    }

    pub(super) fn start(&self) -> Timestamp {
        self.journal
            .first()
            .map_or(Timestamp::default(), |entry| entry.at)
    }
}

pub(super) async fn show(
    Person(client): Person,
    Path(id): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    use axum::response::IntoResponse;
    let known = Known::of(&client, id.parse()?).await?;
    let title = format!("Run {}", shown(&id));
    if known.view.finished_at.is_some() {
        let page = Page::new(Place::Runs, title, body(&known, asked.all, None));
        return Ok(page.into_response());
    }
    Ok(Page::live(title, Place::Runs, |nonce| {
        body(&known, asked.all, Some(nonce))
    }))
}

/// With a nonce the page follows the run.
pub(super) fn body(known: &Known, all: bool, nonce: Option<&str>) -> Markup {
    let path = run_path(&known.view.id);
    html! {
        @match nonce {
            Some(nonce) => div id="summary" hx-get={ (path) "/summary" } hx-trigger="changed from:#follow throttle:1s"
                hx-swap="innerMorph" hx-nonce=(nonce) { (summary(known)) },
            None => div id="summary" { (summary(known)) },
        }
        (actions(known, &path))
        h2 id="timeline-name" { "What happened" }
        (timeline(known, all, nonce, &path))
    }
}

fn actions(known: &Known, path: &str) -> Markup {
    html! {
        div.actions {
            @if known.view.finished_at.is_none() {
                form.inline method="post" action={ (path) "/stop" } { button { "Stop the run" } }
            }
            a href={ (path) "/journal.json" } { "Journal as JSON" }
            a href=(ticket_path(&known.view.ticket)) { "Ticket " (shown(&known.view.ticket)) }
        }
    }
}

fn timeline(known: &Known, all: bool, nonce: Option<&str>, path: &str) -> Markup {
    let left_out = match all {
        true => 0,
        false => known.journal.len().saturating_sub(SHOWN),
    };
    let start = known.start();
    let after = known.journal.last().map(|entry| entry.position);
    html! {
        @if left_out > 0 {
            p { (left_out) " earlier entries are left out. " a href={ (path) "?all=true" } { "Show all" } }
        }
        ol.timeline id="timeline" aria-labelledby="timeline-name" {
            @for entry in known.journal.iter().skip(left_out) { (timeline::item(&known.view.id, entry, start)) }
        }
        @if let Some(nonce) = nonce {
            div id="follow" hx-sse:connect={ (path) "/events?after=" (after.map_or(-1, |at| at.cast_signed())) }
                hx-sse:close="over" hx-target="#timeline" hx-swap="beforeend" hx-nonce=(nonce) {}
        }
    }
}

/// What changes while the run goes on.
pub(super) fn summary(known: &Known) -> Markup {
    let overview = known.overview();
    html! {
        p role="status" { (sentence(known, overview.as_ref())) }
        @if let Some(overview) = &overview {
            @if overview.gate.is_some() {
                div.box.ask {
                    p { a href={ (run_path(&known.view.id)) "/approval" } { "Decide about what it asks" } }
                }
            }
            (facts(known, overview))
        }
        (changes(known))
    }
}

/// How the run stands, in one sentence.
fn sentence(known: &Known, overview: Option<&Overview>) -> Markup {
    let (stands, class) = standing(&known.view);
    let Some(overview) = overview else {
        return html! { "The run " span class=(class) { (stands) } "." };
    };
    let after = between(
        overview.started_at,
        overview.finished_at.unwrap_or(overview.updated_at),
    );
    match &overview.status {
        RunStatus::Finished { reason } => html! {
            "The " (overview.job) " run " span class=(tone(reason)) { (heading(reason)) } " after " (after) "."
            @if let Some(detail) = detail(reason) { pre { (detail) } }
        },
        RunStatus::Parked { waits_for } => html! {
            "The " (overview.job) " run " span.warm { (waiting(waits_for.as_str())) } "."
            @if *waits_for == WaitsFor::Answer { " " a href=(ticket_path(&known.view.ticket)) { "To the ticket" } }
        },
        RunStatus::Queued | RunStatus::Active => html! {
            "The " (overview.job) " run works"
            @if let Some(phase) = overview.phase { " (" (phase.as_str().replace('_', " ")) ")" }
            ", " (after) " so far."
        },
    }
}

fn facts(known: &Known, overview: &Overview) -> Markup {
    let usage = usage(&known.journal);
    html! {
        dl.facts {
            @if !overview.title.is_empty() { dt { "Asked for" } dd { (shown(&overview.title)) } }
            @if let Some(actor) = &overview.actor { dt { "By" } dd { (shown(actor)) } }
            @if let Some(repository) = &overview.repository { dt { "Repository" } dd { (shown(&repository.to_string())) } }
            dt { "Time" }
            dd {
                "model " (duration(overview.time.model_ms)) ", tools " (duration(overview.time.tools_ms))
                ", waiting " (duration(overview.time.waiting_ms))
            }
            dt { "Model" }
            dd {
                (overview.turns) " turns, " (overview.tool_calls) " tools; "
                (count(usage.input_tokens)) " tokens in, " (count(usage.cache_read_tokens)) " cached, "
                (count(usage.output_tokens)) " out"
            }
            dt { "Cost" }
            dd { (money(overview.spend.cost_usd, u64::from(overview.spend.unpriced))) }
            @if let Some(level) = overview.evidence { dt { "Evidence" } dd { (level) } }
            @if let Some(branch) = &overview.branch { dt { "Branch" } dd { (shown(branch)) } }
            @for pull in &overview.pull_requests {
                dt { "Pull request" }
                dd { (link(&pull.url)) }
            }
        }
    }
}

/// A link to a page of others, when it is one of the web.
pub(super) fn link(url: &str) -> Markup {
    html! {
        @match web_address(url) {
            Some(address) => a href=(address) rel="noreferrer" { (shown(url)) },
            None => (shown(url)),
        }
    }
}

fn usage(journal: &[Entry]) -> Usage {
    let mut sum = Usage::default();
    for entry in journal {
        if let Fact::ModelReplied { reply, .. } | Fact::Summarized { reply, .. } = &entry.fact {
            sum.input_tokens += reply.usage.input_tokens;
            sum.output_tokens += reply.usage.output_tokens;
            sum.cache_read_tokens += reply.usage.cache_read_tokens;
        }
    }
    sum
}

/// What the run changed, and what shows that it works, as it was said last.
fn changes(known: &Known) -> Markup {
    let outputs = known.journal.iter().rev().filter_map(|entry| match &entry.fact {
        Fact::PhaseFinished { output } => Some(output),
        _ => None,
    });
    let mut handover = None;
    let mut proof = None;
    for output in outputs {
        match output {
            PhaseOutput::Work {
                exit: Exit::Finished(work) | Exit::CutShort { handover: work, .. },
            } => handover = handover.or(Some(work)),
            PhaseOutput::Prove { proof: shown } => proof = proof.or(Some(shown)),
            _ => {}
        }
    }
    html! {
        @if let Some(handover) = handover { (said(handover)) }
        @if let Some(proof) = proof { (evidence(proof)) }
    }
}

pub(super) fn said(handover: &Handover) -> Markup {
    html! {
        h2 { "Changes" }
        p { strong { (shown(&handover.title)) } }
        pre { (shown(&handover.summary)) }
        @if !handover.files.is_empty() {
            ul { @for file in &handover.files { li { code { (shown(&file.path)) } ": " (shown(&file.change)) } } }
        }
        @if !handover.not_done.is_empty() {
            p { "Not done:" }
            ul { @for what in &handover.not_done { li { (shown(what)) } } }
        }
    }
}

fn evidence(proof: &Proof) -> Markup {
    html! {
        h2 { "Evidence" }
        table.stack {
            caption { "Checks before and after the change; level " (proof.level) }
            thead {
                tr {
                    th scope="col" { "Check" }
                    th scope="col" { "Before" }
                    th scope="col" { "After" }
                    th.number scope="col" { "Passed" }
                }
            }
            tbody {
                @for row in &proof.rows {
                    tr {
                        th scope="row" { code { (shown(&row.command)) } }
                        td data-name="Before" { (row.base.as_ref().map_or("not run", |outcome| outcome.as_str())) }
                        td data-name="After" { (row.head.as_str()) }
                        td.number data-name="Passed" { (row.passed) }
                    }
                }
            }
        }
    }
}

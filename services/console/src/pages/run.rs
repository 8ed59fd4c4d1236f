//! A run: its state in one sentence, its time and cost, its changes and evidence, and its timeline.

use api::types::{OverviewView, RunState, RunView};
use axum::{
    extract::{Path, Query},
    response::Response,
};
use domain::{
    ChangeProof, Fact, JournalEntry, PhaseOutput, RunId, Timestamp, WaitCondition, WorkExit, WorkHandover,
};
use maud::{Markup, html};
use serde::Deserialize;

use super::run_now::render_step;
use crate::{
    layout::{ConsolePage, NavigationEntry},
    markdown::render_markdown,
    person::SignedInPerson,
    problem::PageProblem,
    stages::{CurrentSteps, TimelineCursor, list_stages},
    timeline::RunTimeline,
    words::{
        describe_run_state, format_count, format_duration, format_elapsed, format_money, make_visible,
        run_path, stop_detail, ticket_path, web_address,
    },
};

// Number of the newest entries that a page shows by default.
const SHOWN: usize = 500;

/// Query of the page.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct RunPageQuery {
    /// Show all entries instead of the newest.
    all: bool,
    /// Scroll to the end with every new entry.
    follow: bool,
}

impl RunPageQuery {
    /// Returns the address of the page with these options.
    fn path(self, path: &str) -> String {
        let options = [("all", self.all), ("follow", self.follow)];
        let options = options.into_iter().filter(|(_, is_set)| *is_set);
        let options: Vec<String> = options.map(|(name, _)| format!("{name}=true")).collect();
        match options.is_empty() {
            true => path.to_owned(),
            false => format!("{path}?{}", options.join("&")),
        }
    }
}

/// Run and journal, as the API returned them.
pub(super) struct RunWithJournal {
    pub(super) id: RunId,
    pub(super) view: RunView,
    pub(super) journal: Vec<JournalEntry>,
}

impl RunWithJournal {
    pub(super) async fn of(client: &api::Client, id: RunId) -> Result<Self, PageProblem> {
        let (view, journal) = tokio::join!(client.run(&id), client.journal(&id));
        Ok(Self {
            view: view?,
            journal: journal?,
            id,
        })
    }

    pub(super) fn start(&self) -> Timestamp {
        self.journal
            .first()
            .map_or(Timestamp::default(), |entry| entry.at)
    }
}

pub(super) async fn show_run(
    SignedInPerson(client): SignedInPerson,
    Path(id): Path<String>,
    Query(asked): Query<RunPageQuery>,
) -> Result<Response, PageProblem> {
    use axum::response::IntoResponse;
    let known = RunWithJournal::of(&client, id.parse()?).await?;
    let title = format!("Run {}", make_visible(&id));
    if known.view.finished_at.is_some() {
        let page = ConsolePage::new(NavigationEntry::Runs, title, render_run(&known, asked, None));
        return Ok(page.into_response());
    }
    Ok(ConsolePage::live(title, NavigationEntry::Runs, |nonce| {
        render_run(&known, asked, Some(nonce))
    }))
}

// Trigger of the summary's refresh: with the entries, and a second time 3 s after the last one. The API's record of a
// run is written after the entry, and no further event arrives while a run waits for a person.
const SUMMARY: &str = "changed from:#follow throttle:1s, changed from:#follow delay:3s";

/// Renders the page. With a nonce it follows the run.
pub(super) fn render_run(known: &RunWithJournal, asked: RunPageQuery, nonce: Option<&str>) -> Markup {
    let path = run_path(&known.view.id);
    html! {
        @match nonce {
            Some(nonce) => div id="summary" hx-get={ (path) "/summary" } hx-trigger=(SUMMARY)
                hx-swap="innerMorph" hx-nonce=(nonce) { (render_summary(&known.view)) },
            None => div id="summary" { (render_summary(&known.view)) },
        }
        @match nonce {
            Some(nonce) => div id="changes" hx-get={ (path) "/changes" } hx-trigger="phase from:#follow"
                hx-swap="innerMorph" hx-nonce=(nonce) { (render_changes(&known.journal)) },
            None => (render_changes(&known.journal)),
        }
        (render_actions(known, &path))
        h2 id="timeline-name" { "What happened" }
        (render_timeline(known, asked, nonce, &path))
    }
}

fn render_actions(known: &RunWithJournal, path: &str) -> Markup {
    html! {
        div.actions {
            @if known.view.finished_at.is_none() {
                form.inline method="post" action={ (path) "/stop" } { button { "Stop the run" } }
            }
            a href={ (path) "/journal.json" } { "Journal as JSON" }
            a href=(ticket_path(&known.view.ticket)) { "Ticket " (make_visible(&known.view.ticket)) }
        }
    }
}

fn render_timeline(known: &RunWithJournal, asked: RunPageQuery, nonce: Option<&str>, path: &str) -> Markup {
    let left_out = match asked.all {
        true => 0,
        false => known.journal.len().saturating_sub(SHOWN),
    };
    let timeline = RunTimeline {
        run: &known.view.id,
        start: known.start(),
        is_live: nonce.is_some(),
    };
    // The stream continues after the last entry of this page, so no entry is lost between page and
    // stream.
    let (stages, cursor) = list_stages(&known.journal, left_out);
    html! {
        @if left_out > 0 {
            p { (left_out) " earlier entries are left out. " a href=(RunPageQuery { all: true, ..asked }.path(path)) { "Show all" } }
        }
        (timeline.render_stages(&stages))
        @if let Some(nonce) = nonce { (render_follower(known, asked, path, (cursor, nonce))) }
    }
}

/// Renders the end of a live run's page: the current step, its output, and the element that receives the news.
fn render_follower(
    known: &RunWithJournal,
    asked: RunPageQuery,
    path: &str,
    (cursor, nonce): (TimelineCursor, &str),
) -> Markup {
    let mut steps = CurrentSteps::default();
    known.journal.iter().for_each(|entry| steps.apply(entry));
    let swap = if asked.follow {
        "innerHTML show:bottom"
    } else {
        "innerHTML"
    };
    let other = RunPageQuery {
        follow: !asked.follow,
        ..asked
    }
    .path(path);
    html! {
        div id="follow" hx-sse:connect={ (path) "/events?start=" (known.start().unix_ms()) "&at=" (cursor) }
            hx-sse:close="over" hx-target="#end" hx-swap=(swap) hx-nonce=(nonce) {}
        p id="end" {}
        div.now {
            div id="now" { (render_step(steps.current(), bootstrap::read_wall_clock())) }
            pre id="output" tabindex="0" role="region" aria-label="Output of the running command" {}
            p {
                @match asked.follow {
                    true => a href=(other) { "Stop following" },
                    false => a href={ (other) "#end" } { "Follow to the end" },
                }
            }
        }
    }
}

/// Renders the part that changes while the run continues.
pub(super) fn render_summary(run: &RunView) -> Markup {
    html! {
        p role="status" { (render_state_sentence(run)) }
        @if let Some(overview) = &run.overview {
            @if overview.decides_about.is_some() {
                div.box.ask {
                    p { a href={ (run_path(&run.id)) "/approval" } { "Decide about what it asks" } }
                }
            }
            (render_run_facts(run, overview))
        }
    }
}

/// Describes the state of the run in one sentence.
fn render_state_sentence(run: &RunView) -> Markup {
    let (state, class) = describe_run_state(run);
    let Some(overview) = &run.overview else {
        return html! { "The run " span class=(class) { (state) } "." };
    };
    let ended = run.finished_at.as_ref().unwrap_or(&overview.updated_at);
    let at = |text: &str| Timestamp::parse(text).unwrap_or_default();
    let after = format_elapsed(at(&run.started_at), at(ended));
    match (run.status, &run.stop) {
        (RunState::Finished, Some(reason)) => html! {
            "The " (run.job) " run " span class=(class) { (state) } " after " (after) "."
            @if let Some(detail) = stop_detail(reason) { pre { (detail) } }
        },
        (RunState::Finished, None) | (RunState::Parked, _) => html! {
            "The " (run.job) " run " span class=(class) { (state) } "."
            @if run.waits_for.as_deref() == Some(WaitCondition::Answer.as_str()) {
                " " a href=(ticket_path(&run.ticket)) { "To the ticket" }
            }
        },
        (RunState::Queued | RunState::Active, _) => html! {
            "The " (run.job) " run works"
            @if let Some(phase) = &overview.phase { " (" (make_visible(&phase.replace('_', " "))) ")" }
            ", " (after) " so far."
        },
    }
}

fn render_run_facts(run: &RunView, overview: &OverviewView) -> Markup {
    html! {
        dl.facts {
            @if !overview.title.is_empty() { dt { "Asked for" } dd { (make_visible(&overview.title)) } }
            @if let Some(actor) = &overview.actor { dt { "By" } dd { (make_visible(actor)) } }
            @if let Some(repository) = &overview.repository { dt { "Repository" } dd { (make_visible(repository)) } }
            dt { "Time" }
            dd {
                "model " (format_duration(overview.model_ms)) ", tools " (format_duration(overview.tools_ms))
                ", waiting " (format_duration(overview.waiting_ms))
            }
            dt { "Model" }
            dd {
                (run.turns) " turns, " (overview.tool_calls) " tools; "
                (format_count(overview.input_tokens)) " tokens in, " (format_count(overview.cached_tokens))
                " of them cached, " (format_count(overview.output_tokens)) " out"
            }
            dt { "Cost" }
            dd { (format_money(overview.cost_usd, u64::from(overview.unpriced))) }
            @if let Some(level) = &overview.evidence { dt { "Evidence" } dd { (level) } }
            @if let Some(branch) = &overview.branch { dt { "Branch" } dd { (make_visible(branch)) } }
            @for pull in &overview.pull_requests {
                dt { "Pull request" }
                dd { (render_link(&pull.url)) }
            }
        }
    }
}

/// Renders a link if the address is one of the web, else its text.
pub(super) fn render_link(url: &str) -> Markup {
    html! {
        @match web_address(url) {
            Some(address) => a href=(address) rel="noreferrer" { (make_visible(url)) },
            None => (make_visible(url)),
        }
    }
}

/// Renders the last reported changes of the run and its last evidence.
pub(super) fn render_changes(journal: &[JournalEntry]) -> Markup {
    let mut handover = None;
    let mut proof = None;
    for entry in journal.iter().rev() {
        let Fact::PhaseFinished { output } = &entry.fact else {
            continue;
        };
        if let PhaseOutput::Work {
            exit: WorkExit::Finished(work) | WorkExit::CutShort { handover: work, .. },
        } = output
        {
            handover = handover.or(Some(work));
        } else if let PhaseOutput::Prove { proof: shown } = output {
            proof = proof.or(Some(shown));
        }
    }
    html! {
        @if let Some(handover) = handover { (render_handover(handover)) }
        @if let Some(proof) = proof { (render_evidence(proof)) }
    }
}

pub(super) fn render_handover(handover: &WorkHandover) -> Markup {
    html! {
        h2 { "Changes" }
        p { strong { (make_visible(&handover.title)) } }
        (render_markdown(&handover.summary))
        @if !handover.files.is_empty() {
            ul { @for file in &handover.files { li { code { (make_visible(&file.path)) } ": " (make_visible(&file.change)) } } }
        }
        @if !handover.not_done.is_empty() {
            p { "Not done:" }
            ul { @for what in &handover.not_done { li { (make_visible(what)) } } }
        }
    }
}

fn render_evidence(proof: &ChangeProof) -> Markup {
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
                        th scope="row" { code { (make_visible(&row.command)) } }
                        td data-name="Before" { (row.base.as_ref().map_or("not run", |outcome| outcome.as_str())) }
                        td data-name="After" { (row.head.as_str()) }
                        td.number data-name="Passed" { (row.passed) }
                    }
                }
            }
        }
    }
}

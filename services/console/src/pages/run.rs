//! A run: its header, its result, and its timeline.

use std::ops::Range;

use api::types::RunView;
use axum::{
    extract::{Path, Query},
    response::{IntoResponse, Response},
};
use domain::{JournalEntry, RunId, Timestamp};
use maud::{Markup, html};

use super::{
    run_changes::render_changes, run_now::render_step, run_orders::render_orders, run_pages::RunPageQuery,
    run_summary::render_summary,
};
use crate::{
    layout::{ConsolePage, NavigationEntry},
    person::SignedInPerson,
    problem::PageProblem,
    stages::{CurrentSteps, list_stages},
    timeline::RunTimeline,
    words::{make_visible, run_path},
};

// Trigger of the summary's refresh: with the entries, and a second time 3 s after the last one. The API's record of a
// run is written after the entry, and no further event arrives while a run waits for a person.
const SUMMARY_TRIGGER: &str = "changed from:#follow throttle:1s, changed from:#follow delay:3s";

/// Run and journal, as the API returned them.
pub(super) struct RunWithJournal {
    pub(super) id: RunId,
    pub(super) view: RunView,
    pub(super) journal: Vec<JournalEntry>,
}

impl RunWithJournal {
    pub(super) async fn of(client: &api::Client, id: RunId) -> Result<Self, PageProblem> {
        let (view, journal) = tokio::join!(client.runs().read(&id), client.runs().journal(&id));
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
    let known = RunWithJournal::of(&client, id.parse()?).await?;
    let title = format!("Run {}", make_visible(&id));
    let count = known.journal.len();
    let now = bootstrap::read_wall_clock();
    // News belong to the newest page only.
    if known.view.finished_at.is_some() || asked.select_entries(count).end < count {
        let page = ConsolePage::new(NavigationEntry::Runs, title, render_run(&known, asked, None, now));
        return Ok(page.into_response());
    }
    Ok(ConsolePage::live(
        title,
        NavigationEntry::Runs,
        asked.follow,
        |nonce| render_run(&known, asked, Some(nonce), now),
    ))
}

/// Renders the page. With a nonce it follows the run.
pub(super) fn render_run(
    known: &RunWithJournal,
    asked: RunPageQuery,
    nonce: Option<&str>,
    now: Timestamp,
) -> Markup {
    let path = run_path(&known.view.id);
    let shown = asked.select_entries(known.journal.len());
    let changes = render_changes(&known.view.id, &known.journal, &shown, now);
    html! {
        @match nonce {
            Some(nonce) => div id="summary" hx-get={ (path) "/summary" } hx-trigger=(SUMMARY_TRIGGER)
                hx-swap="innerMorph" hx-nonce=(nonce) { (render_summary(&known.view, now)) },
            None => div id="summary" { (render_summary(&known.view, now)) },
        }
        @match nonce {
            Some(nonce) => div id="changes" hx-get={ (path) "/changes?from=" (shown.start) } hx-trigger="phase from:#follow"
                hx-swap="innerMorph" hx-nonce=(nonce) { (changes) },
            None => (changes),
        }
        (render_orders(&known.view))
        h2 id="timeline-name" { "What happened" }
        (asked.render_links(&path, &shown, known.journal.len()))
        (render_timeline(known, asked, nonce, &shown, now))
    }
}

fn render_timeline(
    known: &RunWithJournal,
    asked: RunPageQuery,
    nonce: Option<&str>,
    shown: &Range<usize>,
    now: Timestamp,
) -> Markup {
    let path = run_path(&known.view.id);
    let timeline = RunTimeline {
        run: &known.view.id,
        start: known.start(),
        is_live: nonce.is_some(),
    };
    // The stream continues after the last entry of this page, so no entry is lost between page and stream.
    let (stages, cursor) = list_stages(&known.journal, shown.clone());
    html! {
        (timeline.render_stages(&stages))
        @if shown.end < known.journal.len() { (asked.render_links(&path, shown, known.journal.len())) }
        @if let Some(nonce) = nonce {
            @let steps = CurrentSteps::of(&known.journal);
            @let cursor = cursor.with_step(&steps);
            @let first = known.journal.get(shown.start).map_or(0, |entry| entry.position);
            @let events = format!("{path}/events?start={}&at={cursor}&from={first}", known.start().unix_ms());
            (render_follower(&path, asked, &events, nonce, &render_step(steps.current(), now)))
        }
    }
}

/// Renders the end of a live run's page: the current step, its output, and the element that receives the news.
fn render_follower(path: &str, asked: RunPageQuery, events: &str, nonce: &str, step: &Markup) -> Markup {
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
        div id="follow" hx-sse:connect=(events) hx-sse:close="over" hx-target="#end" hx-swap=(swap)
            hx-nonce=(nonce) {}
        p id="end" {}
        div.now {
            div id="now" { (step) }
            pre id="output" tabindex="0" role="region" aria-label="Output of the running command" {}
            p {
                @if asked.follow {
                    a href=(other) { "Stop following" }
                } @else {
                    a href={ (other) "#end" } { "Follow to the end" }
                }
            }
            noscript {
                p.soft {
                    @if asked.follow {
                        "Without JavaScript, this page loads again every 15 seconds."
                    } @else {
                        "Without JavaScript, this page shows the run as it was when it loaded, unless you follow it."
                    }
                }
            }
        }
    }
}

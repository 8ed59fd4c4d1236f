//! Journal of a run: new entries over server-sent events, one entry on a page, and all entries as JSON.

use std::{convert::Infallible, time::Duration};

use axum::{
    Json,
    extract::{Path, Query, State as Shared},
    http::HeaderMap,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use domain::{Fact, JournalEntry, RunId, Timestamp};
use futures::{StreamExt, TryStreamExt, stream};
use maud::{Markup, html};
use serde::Deserialize;

use super::run;
use crate::{
    layout::{ConsolePage, NavigationEntry},
    person::{ConsoleState, SignedInPerson},
    problem::PageProblem,
    timeline,
    words::{make_visible, run_path},
};

// nginx closes a connection without data after 60 s by default (proxy_read_timeout).
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// State of the page that follows.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct FollowQuery {
    /// Position of the page's last entry.
    after: Option<u64>,
    /// Time of the page's first entry, in Unix milliseconds. The times of the other entries are relative to it.
    start: Option<i64>,
}

/// Renders the part of a run's page that changes with every entry. It reads the API's record of the run, not its
/// journal.
pub(super) async fn serve_summary(
    SignedInPerson(client): SignedInPerson,
    Path(id): Path<String>,
) -> Result<Markup, PageProblem> {
    Ok(run::render_summary(&client.run(&id.parse()?).await?))
}

/// Renders the part that changes when a phase ends.
pub(super) async fn serve_changes(
    SignedInPerson(client): SignedInPerson,
    Path(id): Path<String>,
) -> Result<Markup, PageProblem> {
    Ok(run::render_changes(&client.journal(&id.parse()?).await?))
}

/// Streams new entries as markup. A `changed` event follows each entry, and an `over` event the last one.
pub(super) async fn serve_events(
    SignedInPerson(client): SignedInPerson,
    Shared(state): Shared<ConsoleState>,
    Path(id): Path<String>,
    Query(asked): Query<FollowQuery>,
    headers: HeaderMap,
) -> Result<Response, PageProblem> {
    let run: RunId = id.parse()?;
    // After a lost connection the browser sends Last-Event-ID, which is newer than the position in the address.
    let last = last_event(&headers).or(asked.after);
    let mut start = asked.start.map(Timestamp::from_unix_ms);
    let entries = client.follow_after(&run, last).await?.into_stream();
    let events = entries
        // An error ends the stream. The browser connects again and continues after the last event.
        .take_while(|entry| std::future::ready(entry.is_ok()))
        .filter_map(|entry| std::future::ready(entry.ok()))
        .flat_map(move |entry| {
            let start = *start.get_or_insert(entry.at);
            let events = of_entry(&id, &entry, start).into_iter();
            stream::iter(events.map(Ok::<_, Infallible>))
        })
        // Otherwise each open page would hold the shutdown until the drain limit of the listener.
        .take_until(state.shutdown.clone().cancelled_owned());
    let answer = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    // nginx would buffer the events otherwise.
    Ok(([("x-accel-buffering", "no")], answer).into_response())
}

/// Returns the position of the last event that the browser received before it lost the connection.
fn last_event(headers: &HeaderMap) -> Option<u64> {
    headers.get("last-event-id")?.to_str().ok()?.trim().parse().ok()
}

fn of_entry(run: &str, entry: &JournalEntry, start: Timestamp) -> Vec<Event> {
    let item = timeline::render_entry_item(run, entry, start).into_string();
    let mut events = vec![
        Event::default().id(entry.position.to_string()).data(item),
        Event::default().event("changed").data("."),
    ];
    if matches!(entry.fact, Fact::PhaseFinished { .. }) {
        events.push(Event::default().event("phase").data("."));
    }
    if matches!(entry.fact, Fact::RunFinished { .. }) {
        events.push(Event::default().event("over").data("."));
    }
    events
}

pub(super) async fn serve_journal(
    SignedInPerson(client): SignedInPerson,
    Path(id): Path<String>,
) -> Result<Json<Vec<JournalEntry>>, PageProblem> {
    Ok(Json(client.journal(&id.parse()?).await?))
}

pub(super) async fn show_entry(
    SignedInPerson(client): SignedInPerson,
    Path((id, position)): Path<(String, u64)>,
) -> Result<ConsolePage, PageProblem> {
    let entry = client.entry(&id.parse()?, position).await?;
    let entry = entry.ok_or(PageProblem::NotFound)?;
    Ok(ConsolePage::new(
        NavigationEntry::Runs,
        format!("Entry {position} of {}", make_visible(&id)),
        render_entry(&id, &entry),
    ))
}

pub(super) fn render_entry(run: &str, entry: &JournalEntry) -> Markup {
    let json = serde_json::to_string_pretty(entry).unwrap_or_default();
    html! {
        p { (entry.fact.name().replace('_', " ")) ", written at " (entry.at) }
        pre tabindex="0" { (make_visible(&json)) }
        p { a href={ (run_path(run)) "?all=true#entry-" (entry.position) } { "To its place in the run" } }
    }
}

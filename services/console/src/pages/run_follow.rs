//! New entries of a run over server-sent events, each for its place on the page.

use std::{convert::Infallible, time::Duration};

use axum::{
    extract::{Path, Query, State as Shared},
    http::HeaderMap,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use domain::{Fact, JournalEntry, RunId, Timestamp};
use futures::{StreamExt, TryStreamExt, stream};
use maud::html;
use serde::Deserialize;

use crate::{
    person::{ConsoleState, SignedInPerson},
    problem::PageProblem,
    stages::TimelineCursor,
    timeline::RunTimeline,
    words::format_elapsed,
};

// nginx closes a connection without data after 60 s by default (proxy_read_timeout).
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// State of the page that follows.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct FollowQuery {
    /// Cursor of the timeline after the page's last entry.
    at: String,
    /// Time of the page's first entry, in Unix milliseconds. The times of the other entries are relative to it.
    start: Option<i64>,
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
    // After a lost connection the browser sends Last-Event-ID, which is newer than the cursor in the address.
    let cursor = read_last_event(&headers).or_else(|| asked.at.parse().ok());
    let mut followed = FollowedRun {
        run: id,
        start: asked.start.map(Timestamp::from_unix_ms),
        cursor: cursor.unwrap_or_default(),
    };
    let entries = client
        .follow_after(&run, followed.cursor.last)
        .await?
        .into_stream();
    let events = entries
        // An error ends the stream. The browser connects again and continues after the last event.
        .take_while(|entry| std::future::ready(entry.is_ok()))
        .filter_map(|entry| std::future::ready(entry.ok()))
        .flat_map(move |entry| {
            stream::iter(followed.render_entry(&entry).into_iter().map(Ok::<_, Infallible>))
        })
        // Otherwise each open page would hold the shutdown until the drain limit of the listener.
        .take_until(state.shutdown.clone().cancelled_owned());
    let answer = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    // nginx would buffer the events otherwise.
    Ok(([("x-accel-buffering", "no")], answer).into_response())
}

/// Returns the cursor of the last event that the browser received before it lost the connection.
fn read_last_event(headers: &HeaderMap) -> Option<TimelineCursor> {
    headers.get("last-event-id")?.to_str().ok()?.trim().parse().ok()
}

/// Run that a page follows.
struct FollowedRun {
    run: String,
    start: Option<Timestamp>,
    cursor: TimelineCursor,
}

impl FollowedRun {
    fn render_entry(&mut self, entry: &JournalEntry) -> Vec<Event> {
        let start = *self.start.get_or_insert(entry.at);
        let timeline = RunTimeline {
            run: &self.run,
            start,
            is_live: true,
        };
        let item = timeline.render_new_entry(entry, self.cursor.place(entry));
        let markup = html! {
            (item)
            "Last entry: " a href={ "#entry-" (entry.position) } { "#" (entry.position) } ", after "
            (format_elapsed(start, entry.at))
        };
        let mut events = vec![
            Event::default()
                .id(self.cursor.to_string())
                .data(markup.into_string()),
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
}

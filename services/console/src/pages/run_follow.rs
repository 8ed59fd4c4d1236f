//! News of a run over server-sent events: new entries for their places on the page, the output of the running command,
//! and the time of the current step.

use std::{convert::Infallible, time::Duration};

use api::RunEvent;
use axum::{
    extract::{Path, Query, State as Shared},
    http::HeaderMap,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use domain::{Fact, JournalEntry, RunId, Timestamp};
use futures::{StreamExt, stream};
use maud::{Markup, html};
use serde::Deserialize;
use tokio::time::{MissedTickBehavior, interval};

use super::run_now::{OutputTail, render_step};
use crate::{
    person::{ConsoleState, SignedInPerson, is_signed_in, session_id},
    problem::PageProblem,
    stages::{CurrentSteps, InvalidCursor, StageChecks, TimelineCursor},
    timeline::RunTimeline,
    words::format_elapsed,
};

// nginx closes a connection without data after 60 s by default (proxy_read_timeout).
const KEEP_ALIVE: Duration = Duration::from_secs(15);
// Period of the shown time of the current step.
const TICK: Duration = Duration::from_secs(1);
// Most pieces of output that become one change of the page, for a command that prints faster than a browser draws.
const PIECES: usize = 64;

/// State of the page that follows.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct FollowQuery {
    /// Cursor of the timeline after the page's last entry.
    at: String,
    /// Time of the page's first entry, in Unix milliseconds. The times of the other entries are relative to it.
    start: Option<i64>,
    /// Position of the page's first entry.
    from: u64,
}

/// Signal of a followed run.
enum FollowSignal {
    News(Vec<RunEvent>),
    Tick,
    Over,
}

/// Streams changes as markup. A `changed` event follows each entry, and an `over` event the last one. The stream ends
/// with the session.
pub(super) async fn serve_events(
    SignedInPerson(client): SignedInPerson,
    Shared(state): Shared<ConsoleState>,
    Path(id): Path<String>,
    Query(asked): Query<FollowQuery>,
    headers: HeaderMap,
) -> Result<Response, PageProblem> {
    let run: RunId = id.parse()?;
    // After a lost connection the browser sends Last-Event-ID, which is newer than the cursor in the address.
    let cursor = match read_last_event(&headers) {
        Some(cursor) => cursor,
        None if asked.at.is_empty() => TimelineCursor::default(),
        // From the start, the stream would repeat what the page already shows.
        None => asked
            .at
            .parse::<TimelineCursor>()
            .map_err(|InvalidCursor| PageProblem::Form("Load the page of the run again."))?,
    };
    let mut followed = FollowedRun {
        run: id,
        start: asked.start.map(Timestamp::from_unix_ms),
        cursor,
        steps: CurrentSteps::default(),
        checks: StageChecks::default(),
        output: OutputTail::default(),
    };
    if let Some(position) = followed.cursor.step
        && let Some(entry) = client.runs().entry(&run, position).await?
    {
        followed.steps.apply(&entry);
    }
    // The rows of the checks have their earlier attempts, as far as they are on the page.
    if let Some(last) = followed.cursor.last
        && followed.cursor.is_in_checks()
    {
        let count = last.saturating_sub(asked.from).saturating_add(1);
        let limit = usize::try_from(count).unwrap_or(usize::MAX);
        followed.checks = StageChecks::of(&client.runs().entries(&run, asked.from, limit).await?);
    }
    let news = client
        .runs()
        .follow_with_output(&run, followed.cursor.last)
        .await?;
    let news = news
        // An error ends the stream. The browser connects again and continues after the last event.
        .take_while(|event| std::future::ready(event.is_ok()))
        .filter_map(|event| std::future::ready(event.ok()))
        .ready_chunks(PIECES)
        .map(FollowSignal::News)
        .chain(stream::iter([FollowSignal::Over]));
    let mut clock = interval(TICK);
    // A browser that reads nothing for a minute needs the current time, not sixty earlier ones.
    clock.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let session = session_id(&state, &headers).unwrap_or_default();
    let ticks = stream::unfold(
        (clock, state.clone(), session),
        |(mut clock, state, session)| async move {
            clock.tick().await;
            // A run may last longer than the session, and after a logout no page may show its news.
            let signal = if is_signed_in(&state, &session).await {
                FollowSignal::Tick
            } else {
                FollowSignal::Over
            };
            Some((signal, (clock, state, session)))
        },
    );
    let events = stream::select(news, ticks)
        // The ticks have no end.
        .take_while(|signal| std::future::ready(!matches!(signal, FollowSignal::Over)))
        .flat_map(move |signal| {
            let events = followed.render_signal(signal, bootstrap::read_wall_clock());
            stream::iter(events.into_iter().map(Ok::<_, Infallible>))
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
    steps: CurrentSteps,
    checks: StageChecks,
    output: OutputTail,
}

impl FollowedRun {
    fn render_signal(&mut self, signal: FollowSignal, now: Timestamp) -> Vec<Event> {
        match signal {
            FollowSignal::News(news) => self.render_news(&news, now),
            FollowSignal::Tick => self
                .steps
                .current()
                .map(|_| self.build_step_event(now))
                .into_iter()
                .collect(),
            FollowSignal::Over => Vec::new(),
        }
    }

    fn render_news(&mut self, news: &[RunEvent], now: Timestamp) -> Vec<Event> {
        let mut events = Vec::new();
        let mut has_output = false;
        for event in news {
            match event {
                RunEvent::Entry(entry) => events.extend(self.render_entry(entry, now)),
                RunEvent::Output(output) => {
                    self.output.push(output);
                    has_output = true;
                }
            }
        }
        if self.output.clear_unless(self.steps.current()) || has_output {
            events.push(build_swap_event("output", self.output.render()));
        }
        events
    }

    fn render_entry(&mut self, entry: &JournalEntry, now: Timestamp) -> Vec<Event> {
        let start = *self.start.get_or_insert(entry.at);
        let timeline = RunTimeline {
            run: &self.run,
            start,
            is_live: true,
        };
        let place = self.cursor.place(entry);
        self.steps.apply(entry);
        self.cursor = self.cursor.with_step(&self.steps);
        self.checks.push(entry, place);
        let attempts = self.checks.find_attempts(entry.position);
        let item = timeline.render_new_entry(entry, place, attempts.as_ref());
        let item = item.into_string();
        let last = html! {
            "Last event: " a href={ "#entry-" (entry.position) } { "#" (entry.position) } ", after "
            (format_elapsed(start, entry.at))
        };
        let mut events = vec![
            Event::default().id(self.cursor.to_string()).data(item),
            self.build_step_event(now),
            // The page scrolls to the target of this one, so the entry must be there before.
            Event::default().data(last.into_string()),
            Event::default().event("changed").data("."),
        ];
        if matches!(
            entry.fact,
            Fact::PhaseFinished { .. } | Fact::ReportSettled { .. }
        ) {
            events.push(Event::default().event("phase").data("."));
        }
        if matches!(entry.fact, Fact::RunFinished { .. }) {
            events.push(Event::default().event("over").data("."));
        }
        events
    }

    fn build_step_event(&self, now: Timestamp) -> Event {
        build_swap_event("now", render_step(self.steps.current(), now))
    }
}

/// Builds the message that replaces the content of one element of the page.
fn build_swap_event(id: &str, content: Markup) -> Event {
    let message = html! { div id=(id) hx-swap-oob="innerHTML" { (content) } };
    Event::default().data(message.into_string())
}

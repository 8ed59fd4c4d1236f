//! Live events: journal entries over SSE as they are written.

use std::convert::Infallible;

use api::types::{EventsQuery, ProblemView};
use axum::{
    extract::State,
    http::HeaderMap,
    response::sse::{Event, KeepAlive, Sse},
};
use domain::{JournalEntry, LiveOutput, RunId};
use futures::{Stream, StreamExt, stream, stream::BoxStream};
use serde::Serialize;

use super::{
    ApiProblem, ApiQuery, ApiState, ViewerProof,
    auth::InScope,
    runs,
    stream_slots::{StreamKind, StreamSlot},
};

type EventResponse = Sse<axum::response::sse::KeepAliveStream<BoxStream<'static, Result<Event, Infallible>>>>;

#[derive(Serialize)]
struct OfRun<'a> {
    run: &'a RunId,
    entry: &'a JournalEntry,
}

/// Streams the journal of one run: from the start, or after `Last-Event-ID`, until the run is finished.
#[utoipa::path(get, path = "/v1/runs/{id}/events",
    params(("id" = String, Path, description = "Percent-encoded run id."),
        EventsQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "Position of the last entry seen.")),
    security(("bearer" = [])),
    responses((status = 200, content_type = "text/event-stream", body = String),
        (status = 404, body = ProblemView), (status = 429, body = ProblemView)))]
pub(super) async fn stream_run_events(
    InScope(ViewerProof(caller), run): InScope<ViewerProof, RunId>,
    State(state): State<ApiState>,
    ApiQuery(query): ApiQuery<EventsQuery>,
    headers: HeaderMap,
) -> Result<EventResponse, ApiProblem> {
    let router = state.router()?;
    // The slot comes before any read, so that a caller at the limit costs the queue nothing.
    let place = state.streams.open(StreamKind::Run, &caller.name)?;
    let from = first_position(&headers)?;
    runs::find_run(&state, &caller, &run).await?;
    let entries = state.followed.follow(&router.queue, &run, from).await?;
    let output = if query.output {
        router.queue.live().follow(&run).await?
    } else {
        stream::empty().boxed()
    };
    Ok(respond_with_stream(
        &state,
        place,
        until_the_first_ends(entries, output),
    ))
}

/// Merges journal entries with live tool output, and ends with the entries. Output has no id, because
/// it cannot be replayed.
fn until_the_first_ends(
    entries: impl Stream<Item = Event> + Send + 'static,
    output: BoxStream<'static, LiveOutput>,
) -> impl Stream<Item = Event> + Send + 'static {
    // `None` marks the end of the entries: `select` alone would wait for the output stream, which never
    // ends.
    let entries = entries.map(Some).chain(stream::iter([None]));
    let output = output.filter_map(async |output| {
        let event = Event::default().event("output").json_data(output);
        event.ok().map(Some)
    });
    stream::select(entries.boxed(), output.boxed())
        .take_while(|event| std::future::ready(event.is_some()))
        .filter_map(std::future::ready)
}

/// Streams new journal entries of all runs.
#[utoipa::path(get, path = "/v1/events", security(("bearer" = [])),
    responses((status = 200, content_type = "text/event-stream", body = String),
        (status = 429, body = ProblemView)))]
pub(super) async fn stream_all_events(
    ViewerProof(caller): ViewerProof,
    State(state): State<ApiState>,
) -> Result<EventResponse, ApiProblem> {
    let place = state.streams.open(StreamKind::Everything, &caller.name)?;
    let entries = state.router()?.queue.journal().follow_all().await?;
    // The stream ends at an error, so that the client notices that entries may be missing.
    let entries = entries.take_while(|item| std::future::ready(item.is_ok()));
    Ok(respond_with_stream(
        &state,
        place,
        entries.filter_map(move |item| {
            std::future::ready(item.ok().and_then(|(run, entry)| {
                if !caller.scope.has_ticket(run.ticket()) {
                    return None;
                }
                let event = Event::default().event(entry.fact.name());
                event
                    .json_data(OfRun {
                        run: &run,
                        entry: &entry,
                    })
                    .ok()
            }))
        }),
    ))
}

fn respond_with_stream(
    state: &ApiState,
    place: StreamSlot,
    events: impl Stream<Item = Event> + Send + 'static,
) -> EventResponse {
    // An open stream would block the graceful shutdown.
    let shutdown = state.shutdown.clone().cancelled_owned();
    let events = events.take_until(shutdown).map(move |event| {
        // The permit lives as long as the stream.
        let _held = &place;
        Ok(event)
    });
    Sse::new(events.boxed()).keep_alive(KeepAlive::default())
}

fn first_position(headers: &HeaderMap) -> Result<u64, ApiProblem> {
    let Some(last) = headers.get("last-event-id") else {
        return Ok(0);
    };
    let position = last
        .to_str()
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok());
    let position =
        position.ok_or_else(|| ApiProblem::BadRequest("Last-Event-ID must be a position".to_owned()))?;
    Ok(position.saturating_add(1))
}

//! A run while it goes on: new entries of its list as they are written, over server-sent events.

use std::{convert::Infallible, time::Duration};

use axum::{
    extract::{Path, Query, State as Shared},
    http::HeaderMap,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use domain::{Entry, Fact, RunId, Timestamp};
use futures::{StreamExt, TryStreamExt, stream};
use maud::Markup;
use serde::Deserialize;

use super::run;
use crate::{
    person::{Person, State},
    problem::Problem,
    timeline,
};

const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What the page has.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    /// The position of its last entry.
    after: Option<u64>,
    /// When its first entry was written, in milliseconds; the times of the others are counted from there.
    start: Option<i64>,
}

/// The part of a run's page that changes with every entry: what the API keeps of the run, and not its journal.
pub(super) async fn summary(Person(client): Person, Path(id): Path<String>) -> Result<Markup, Problem> {
    Ok(run::summary(&client.run(&id.parse()?).await?))
}

/// The part that changes with the end of a phase.
pub(super) async fn changes(Person(client): Person, Path(id): Path<String>) -> Result<Markup, Problem> {
    Ok(run::changes(&client.journal(&id.parse()?).await?))
}

/// New entries as markup, each with a word that something changed, and a last word when the run is over.
pub(super) async fn events(
    Person(client): Person,
    Shared(state): Shared<State>,
    Path(id): Path<String>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run: RunId = id.parse()?;
    let last = last_event(&headers).or(asked.after);
    let mut start = asked.start.map(Timestamp::from_unix_ms);
    let entries = client.follow_after(&run, last).await?.into_stream();
    let events = entries
        .take_while(|entry| std::future::ready(entry.is_ok()))
        .filter_map(|entry| std::future::ready(entry.ok()))
        .flat_map(move |entry| {
            let start = *start.get_or_insert(entry.at);
            let events = of_entry(&id, &entry, start).into_iter();
            stream::iter(events.map(Ok::<_, Infallible>))
        })
        .take_until(state.shutdown.clone().cancelled_owned());
    let answer = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    Ok(([("x-accel-buffering", "no")], answer).into_response())
}

/// What the page has seen, when it comes back.
fn last_event(headers: &HeaderMap) -> Option<u64> {
    headers.get("last-event-id")?.to_str().ok()?.trim().parse().ok()
}

fn of_entry(run: &str, entry: &Entry, start: Timestamp) -> Vec<Event> {
    let item = timeline::item(run, entry, start).into_string();
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

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

use super::run::{self, Known};
use crate::{
    person::{Person, State},
    problem::Problem,
    timeline,
};

const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The last entry that the page has; -1 for none.
#[derive(Deserialize)]
pub(super) struct Asked {
    #[serde(default = "none")]
    after: i64,
}

const fn none() -> i64 {
    -1
}

/// The part of a run's page that changes.
pub(super) async fn summary(Person(client): Person, Path(id): Path<String>) -> Result<Markup, Problem> {
    Ok(run::summary(&Known::of(&client, id.parse()?).await?))
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
    let last = last_event(&headers).unwrap_or(asked.after);
    let mut start: Option<Timestamp> = None;
    let entries = client.follow(&run).await?.into_stream();
    let events = entries
        .take_while(|entry| std::future::ready(entry.is_ok()))
        .filter_map(|entry| std::future::ready(entry.ok()))
        .flat_map(move |entry| {
            let start = *start.get_or_insert(entry.at);
            let is_new = i64::try_from(entry.position).is_ok_and(|position| position > last);
            let events = match is_new {
                true => of_entry(&id, &entry, start),
                false => Vec::new(),
            };
            stream::iter(events.into_iter().map(Ok::<_, Infallible>))
        })
        .take_until(state.shutdown.clone().cancelled_owned());
    let answer = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    Ok(([("x-accel-buffering", "no")], answer).into_response())
}

/// What the page has seen, when it comes back.
fn last_event(headers: &HeaderMap) -> Option<i64> {
    headers.get("last-event-id")?.to_str().ok()?.trim().parse().ok()
}

fn of_entry(run: &str, entry: &Entry, start: Timestamp) -> Vec<Event> {
    let item = timeline::item(run, entry, start).into_string();
    let mut events = vec![
        Event::default().id(entry.position.to_string()).data(item),
        Event::default().event("changed").data("."),
    ];
    if matches!(entry.fact, Fact::RunFinished { .. }) {
        events.push(Event::default().event("over").data("."));
    }
    events
}

//! A streamed reply, event by event.

use std::time::Duration;

use domain::Reply;
use eventsource_stream::Eventsource as _;
use futures::StreamExt as _;

use super::retry::Failure;

/// What becomes of the stream after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// More to come.
    More,
    /// The reply is whole.
    Done,
}

/// Puts a reply together from one dialect's events.
pub(super) trait Collect {
    /// Takes one event's data.
    fn take(&mut self, data: &str) -> Result<Next, Failure>;
    /// The reply, after [`Next::Done`].
    fn finish(self) -> Result<Reply, Failure>;
}

/// Reads events until the reply is whole; a pause longer than `idle` counts as a break.
pub(super) async fn collect(
    response: reqwest::Response,
    idle: Duration,
    mut collector: impl Collect,
) -> Result<Reply, Failure> {
    let mut events = response.bytes_stream().eventsource();
    loop {
        let event = tokio::time::timeout(idle, events.next())
            .await
            .map_err(|_| Failure::transient("stopped in the middle of its reply"))?;
        match event {
            Some(Ok(event)) => match collector.take(&event.data)? {
                Next::More => {}
                Next::Done => return collector.finish(),
            },
            Some(Err(eventsource_stream::EventStreamError::Transport(error))) => return Err(error.into()),
            Some(Err(_)) => return Err(Failure::Garbage("not an event stream")),
            None => return ended(collector),
        }
    }
}

/// A stream that ends without its closing event was cut, unless it never was one.
fn ended(collector: impl Collect) -> Result<Reply, Failure> {
    match collector.finish() {
        Err(failure @ Failure::Garbage(_)) => Err(failure),
        Ok(_) | Err(_) => Err(Failure::transient("cut its reply")),
    }
}

/// A tool's arguments; text that is not JSON stays a JSON string, so that it can be refused as such.
pub(super) fn arguments(text: String) -> serde_json::Value {
    if text.trim().is_empty() {
        return serde_json::json!({});
    }
    serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text))
}

//! A streamed reply, event by event.

use std::time::Duration;

use aws_smithy_eventstream::frame::{DecodedFrame, MessageFrameDecoder};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::{Buf as _, Bytes, BytesMut};
use domain::Reply;
use eventsource_stream::{EventStreamError, Eventsource as _};
use futures::{Stream, StreamExt as _, stream};
use serde::Deserialize;

use super::failure::{Failure, Said};

/// The longest answer that is read, in bytes.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// How events are told apart in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// `text/event-stream`.
    ServerSentEvents,
    /// `application/vnd.amazon.eventstream`: frames with checksums.
    AwsEventStream,
}

impl Framing {
    fn content_type(self) -> &'static str {
        match self {
            Self::ServerSentEvents => "text/event-stream",
            Self::AwsEventStream => "application/vnd.amazon.eventstream",
        }
    }

    /// Whether an answer says that it is framed so.
    pub(super) fn is_named_by(self, response: &reqwest::Response) -> bool {
        let content_type = response.headers().get(reqwest::header::CONTENT_TYPE);
        content_type
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.starts_with(self.content_type()))
    }
}

/// What becomes of the stream after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// More to come.
    More,
    /// The reply is whole.
    Done,
}

/// Puts a reply together from one dialect's events.
pub(super) trait Collect: Send {
    /// Takes one event's data.
    fn take(&mut self, data: &str) -> Result<Next, Failure>;
    /// The reply, after [`Next::Done`].
    fn finish(self: Box<Self>) -> Result<Reply, Failure>;
}

/// Reads events until the reply is whole; a pause longer than `idle` counts as a break. A stream that ends without its
/// closing event was cut, unless it never was one.
pub(super) async fn collect(
    framing: Framing,
    is_named: bool,
    chunks: impl Stream<Item = Result<Bytes, Failure>> + Send + Unpin,
    idle: Duration,
    mut collector: Box<dyn Collect>,
) -> Result<Reply, Failure> {
    let chunks = limited(chunks);
    let mut events = match framing {
        Framing::ServerSentEvents => server_sent(chunks).boxed(),
        Framing::AwsEventStream => frames(chunks).boxed(),
    };
    let mut is_begun = false;
    loop {
        let event = tokio::time::timeout(idle, events.next())
            .await
            .map_err(|_| Failure::transient("stopped in the middle of its reply"))?;
        match event {
            Some(event) => {
                if collector.take(&event?)? == Next::Done {
                    return collector.finish();
                }
                is_begun = true;
            }
            None if is_named || is_begun => return Err(Failure::transient("cut its reply")),
            None => return Err(Failure::Garbage("not an event stream")),
        }
    }
}

fn limited(
    chunks: impl Stream<Item = Result<Bytes, Failure>> + Send + Unpin,
) -> impl Stream<Item = Result<Bytes, Failure>> + Send + Unpin {
    let mut left = MOST_BYTES;
    chunks.map(move |chunk| {
        let chunk = chunk?;
        left = left
            .checked_sub(chunk.len())
            .ok_or(Failure::Garbage("an endless answer"))?;
        Ok(chunk)
    })
}

fn server_sent(
    chunks: impl Stream<Item = Result<Bytes, Failure>> + Send + Unpin,
) -> impl Stream<Item = Result<String, Failure>> + Send {
    chunks.eventsource().map(|event| match event {
        Ok(event) => Ok(event.data),
        Err(EventStreamError::Transport(failure)) => Err(failure),
        // The last character was cut, not wrong.
        Err(EventStreamError::Utf8(error)) if error.utf8_error().error_len().is_none() => {
            Err(Failure::transient("cut its reply"))
        }
        Err(_) => Err(Failure::Garbage("not an event stream")),
    })
}

/// The frames of an AWS event stream, each with one event of the model's own dialect inside.
fn frames(
    chunks: impl Stream<Item = Result<Bytes, Failure>> + Send + Unpin,
) -> impl Stream<Item = Result<String, Failure>> + Send {
    let start = (chunks, BytesMut::new(), MessageFrameDecoder::new());
    stream::try_unfold(start, |(mut chunks, mut buffer, mut decoder)| async move {
        loop {
            let decoded = decoder.decode_frame(&mut buffer);
            match decoded.map_err(|_| Failure::Garbage("a broken frame"))? {
                DecodedFrame::Complete(message) => match event_of(&message)? {
                    Some(event) => return Ok(Some((event, (chunks, buffer, decoder)))),
                    None => continue,
                },
                DecodedFrame::Incomplete => {}
            }
            match chunks.next().await {
                Some(chunk) => buffer.extend_from_slice(&chunk?),
                None => return Ok(None),
            }
        }
    })
}

#[derive(Deserialize)]
struct Chunk {
    bytes: String,
}

/// The event of a frame; nothing for a kind that is not known.
fn event_of(message: &aws_smithy_types::event_stream::Message) -> Result<Option<String>, Failure> {
    let header = |name: &str| {
        let found = message
            .headers()
            .iter()
            .find(|header| header.name().as_str() == name)?;
        Some(found.value().as_string().ok()?.as_str().to_owned())
    };
    if let Some(class) = header(":exception-type").or_else(|| header(":error-code")) {
        let said = Said::read(message.payload().chunk(), Some(&class));
        return Err(match said.kind() {
            Some(kind) => kind.failure(said.words(None)),
            None => Failure::transient("reported an error in the middle of its reply"),
        });
    }
    if header(":event-type").as_deref() != Some("chunk") {
        return Ok(None);
    }
    let garbage = |_| Failure::Garbage("an unknown frame");
    let chunk: Chunk = serde_json::from_slice(message.payload()).map_err(garbage)?;
    let bytes = STANDARD
        .decode(chunk.bytes)
        .map_err(|_| Failure::Garbage("an unknown frame"))?;
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| Failure::Garbage("an unknown frame"))
}

/// A tool's arguments; text that is not JSON stays a JSON string, so that it can be refused as such.
pub(super) fn arguments(text: String) -> serde_json::Value {
    if text.trim().is_empty() {
        return serde_json::json!({});
    }
    serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text))
}

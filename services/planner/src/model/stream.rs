//! Reads a streamed reply, event by event.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use domain::{ModelReply, ReplyBlock};
use eventsource_stream::{EventStreamError, Eventsource as _};
use futures::{Stream, StreamExt as _, stream};
use serde_json::{Map, Value, json};

use super::{
    failure::{AttemptFailure, unwrap_error},
    split_characters::{self, Utf8Decoder},
};

const BOM: char = '\u{feff}';
// Maximum size of a response in bytes.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Framing of the events in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamFraming {
    /// `text/event-stream`: events as lines of text.
    ServerSentEvents,
    /// `application/vnd.amazon.eventstream`: frames with checksums.
    #[cfg(feature = "bedrock")]
    AwsEventStream,
}

impl StreamFraming {
    fn content_type(self) -> &'static str {
        match self {
            Self::ServerSentEvents => "text/event-stream",
            #[cfg(feature = "bedrock")]
            Self::AwsEventStream => "application/vnd.amazon.eventstream",
        }
    }

    /// Returns true if the content type of a response names this framing.
    pub(super) fn is_named_by(self, response: &reqwest::Response) -> bool {
        let content_type = response.headers().get(reqwest::header::CONTENT_TYPE);
        content_type
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.starts_with(self.content_type()))
    }
}

/// State of the stream after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamProgress {
    /// The reply is incomplete; more events follow.
    More,
    /// The reply is complete.
    Done,
}

/// Collector that builds a reply from one dialect's events.
pub(super) trait ReplyCollector: Send {
    /// Adds one event, a JSON object.
    fn take(&mut self, event: &Value) -> Result<StreamProgress, AttemptFailure>;
    /// Returns true if the stream has a stop reason, so that a missing last event changes nothing.
    fn is_whole(&self) -> bool;
    /// Returns the reply, after [`StreamProgress::Done`].
    fn finish(self: Box<Self>) -> Result<ModelReply, AttemptFailure>;
}

/// Reads events until the reply is complete; a pause longer than `idle` counts as a break.
///
/// A comment that keeps the connection alive ends a pause. A stream without its closing event is incomplete,
/// unless it has a stop reason or never was an event stream.
pub(super) async fn collect_reply(
    framing: StreamFraming,
    is_named: bool,
    chunks: impl Stream<Item = Result<Bytes, AttemptFailure>> + Send + Unpin,
    idle: Duration,
    mut collector: Box<dyn ReplyCollector>,
) -> Result<ModelReply, AttemptFailure> {
    // Fused: the first byte may be searched for to the end.
    let mut chunks = limit_pauses(limit_bytes(chunks), idle).fuse().boxed();
    // An error page or plain JSON shows in the first byte; frames have checksums instead.
    if framing == StreamFraming::ServerSentEvents {
        let (start, rest) = peek_first_byte(chunks).await?;
        chunks = rest;
        match start {
            // Page of a gateway or proxy: a later attempt may reach the model.
            Some(b'<') => return Err(AttemptFailure::Garbage("a page in place of a reply")),
            Some(b'{' | b'[') => return read_whole_reply(chunks, collector).await,
            _ => {}
        }
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let mut events = match framing {
        StreamFraming::ServerSentEvents => decode_events(chunks, is_over.clone()).boxed(),
        #[cfg(feature = "bedrock")]
        StreamFraming::AwsEventStream => super::event_frames::decode_frames(chunks).boxed(),
    };
    let mut is_begun = false;
    loop {
        let event = if collector.is_whole() {
            // Some servers keep the connection open after the reply, or reset it. Damage is no such end.
            match tokio::time::timeout(idle, events.next()).await {
                Err(_) => return collector.finish(),
                Ok(Some(Err(failure))) if !matches!(failure, AttemptFailure::Garbage(_)) => {
                    return collector.finish();
                }
                Ok(event) => event,
            }
        } else {
            events.next().await
        };
        match event.transpose()? {
            // Some servers keep the connection alive with empty events.
            Some(event) if event.trim().is_empty() => {}
            Some(event) => {
                match take_event(&mut *collector, &event) {
                    Ok(StreamProgress::Done) => return collector.finish(),
                    Ok(StreamProgress::More) => is_begun = true,
                    // The end of the stream interrupted this event.
                    Err(AttemptFailure::Garbage(_)) if is_over.load(Ordering::Relaxed) => {
                        return finish_interrupted(collector);
                    }
                    Err(failure) => return Err(failure),
                }
            }
            None if is_named || is_begun => return finish_interrupted(collector),
            None => return Err(AttemptFailure::Garbage("not an event stream")),
        }
    }
}

/// Adds the data of one event to the reply.
fn take_event(collector: &mut dyn ReplyCollector, data: &str) -> Result<StreamProgress, AttemptFailure> {
    if data.trim() == "[DONE]" {
        return Ok(StreamProgress::Done);
    }
    let event = serde_json::from_str(&split_characters::seal_surrogates(data))
        .map_err(|_| AttemptFailure::Garbage("an event that is not JSON"))?;
    let event: Value = unwrap_error(event);
    if !event.is_object() {
        return Err(AttemptFailure::Garbage("an unknown event"));
    }
    collector.take(&event)
}

/// Handles a stream that ends without its closing event.
fn finish_interrupted(collector: Box<dyn ReplyCollector>) -> Result<ModelReply, AttemptFailure> {
    if collector.is_whole() {
        collector.finish()
    } else {
        Err(AttemptFailure::transient("interrupted its reply"))
    }
}

type ByteChunks<'a> = stream::BoxStream<'a, Result<Bytes, AttemptFailure>>;

// Bytes of a byte order mark in UTF-8.
const BOM_BYTES: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// Returns the first byte that is neither white space nor a byte order mark, and the complete stream.
async fn peek_first_byte(mut chunks: ByteChunks<'_>) -> Result<(Option<u8>, ByteChunks<'_>), AttemptFailure> {
    let mut read = Vec::new();
    loop {
        let Some(chunk) = chunks.next().await.transpose()? else {
            return Ok((None, stream::iter(read).chain(chunks).boxed()));
        };
        let is_start = |byte: &&u8| !byte.is_ascii_whitespace() && !BOM_BYTES.contains(byte);
        let start = chunk.iter().find(is_start).copied();
        read.push(Ok(chunk));
        if start.is_some() {
            return Ok((start, stream::iter(read).chain(chunks).boxed()));
        }
    }
}

/// Reads the reply of a server that returns one JSON text instead of a stream.
async fn read_whole_reply(
    mut chunks: ByteChunks<'_>,
    mut collector: Box<dyn ReplyCollector>,
) -> Result<ModelReply, AttemptFailure> {
    let (mut pieces, mut text) = (Utf8Decoder::default(), String::new());
    while let Some(chunk) = chunks.next().await {
        text.push_str(&pieces.take(&chunk?));
    }
    take_event(&mut *collector, text.trim_start_matches(BOM))?;
    // The text is complete JSON, so the reply is complete without a stop reason, too.
    collector.finish()
}

/// Ends a stream with a failure after a pause longer than `idle`.
fn limit_pauses(
    chunks: impl Stream<Item = Result<Bytes, AttemptFailure>> + Send + Unpin,
    idle: Duration,
) -> impl Stream<Item = Result<Bytes, AttemptFailure>> + Send {
    stream::unfold(Some(chunks), move |chunks| async move {
        let mut chunks = chunks?;
        match tokio::time::timeout(idle, chunks.next()).await {
            Ok(chunk) => Some((chunk?, Some(chunks))),
            Err(_) => Some((
                Err(AttemptFailure::transient("stopped in the middle of its reply")),
                None,
            )),
        }
    })
}

fn limit_bytes(
    chunks: impl Stream<Item = Result<Bytes, AttemptFailure>> + Send + Unpin,
) -> impl Stream<Item = Result<Bytes, AttemptFailure>> + Send + Unpin {
    let mut left = MOST_BYTES;
    chunks.map(move |chunk| {
        let chunk = chunk?;
        left = left
            .checked_sub(chunk.len())
            .ok_or(AttemptFailure::Garbage("an endless answer"))?;
        Ok(chunk)
    })
}

/// Decodes the events of a stream. Sets `is_over` before an event that the end of the stream completes.
fn decode_events(
    chunks: impl Stream<Item = Result<Bytes, AttemptFailure>> + Send + Unpin,
    is_over: Arc<AtomicBool>,
) -> impl Stream<Item = Result<String, AttemptFailure>> + Send {
    let text = stream::unfold(
        (chunks, Some(Utf8Decoder::default()), false),
        move |(mut chunks, pieces, is_begun)| {
            let is_over = is_over.clone();
            async move {
                let mut pieces = pieces?;
                match chunks.next().await {
                    Some(Ok(chunk)) => {
                        let mut text = pieces.take(&chunk);
                        // The parser of events panics on a byte order mark.
                        if !is_begun && text.starts_with(BOM) {
                            text = text.trim_start_matches(BOM).to_owned();
                        }
                        let is_begun = is_begun || !text.is_empty();
                        Some((Ok(Bytes::from(text)), (chunks, Some(pieces), is_begun)))
                    }
                    Some(Err(failure)) => Some((Err(failure), (chunks, None, is_begun))),
                    // Some servers omit the blank line after the last event.
                    None => {
                        is_over.store(true, Ordering::Relaxed);
                        let text = Bytes::from(pieces.finish() + "\n\n");
                        Some((Ok(text), (chunks, None, is_begun)))
                    }
                }
            }
        },
    );
    Box::pin(text).eventsource().map(|event| match event {
        Ok(event) => Ok(event.data),
        Err(EventStreamError::Transport(failure)) => Err(failure),
        Err(_) => Err(AttemptFailure::Garbage("not an event stream")),
    })
}

/// Creates a block that only its model understands. Provider and model are added to the complete reply.
pub(super) fn opaque_block(dialect: &str, value: Value) -> ReplyBlock {
    ReplyBlock::Opaque {
        dialect: dialect.to_owned(),
        provider: String::new(),
        model: String::new(),
        value,
    }
}

/// Parses a tool's arguments. Invalid JSON becomes a JSON string, so that the planner can refuse it. An
/// object that is encoded as a JSON string becomes that object.
pub(super) fn parse_arguments(text: String) -> Value {
    // A call without arguments may come without any text.
    if text.trim().is_empty() {
        return Value::Object(Map::new());
    }
    match split_characters::read_json(&text) {
        Ok(Value::String(inner)) => match split_characters::read_json(&inner) {
            Ok(object @ Value::Object(_)) => object,
            Ok(_) | Err(_) if inner.trim().is_empty() => Value::Object(Map::new()),
            Ok(_) | Err(_) => Value::String(inner),
        },
        Ok(Value::Null) => Value::Object(Map::new()),
        Ok(value) => value,
        Err(_) => Value::String(text),
    }
}

/// Parses the arguments of a call of a tool. Some models write the patch itself as the arguments of
/// `apply_patch`; it becomes the object that the tool expects.
///
/// # Errors
/// [`AttemptFailure::Garbage`] when the text holds the arguments of several calls.
pub(super) fn parse_call_arguments(tool: &str, text: String) -> Result<Value, AttemptFailure> {
    if has_several_objects(&text) {
        return Err(AttemptFailure::Garbage("tool calls that cannot be separated"));
    }
    let arguments = parse_arguments(text);
    let is_bare_patch = tool == "apply_patch" && arguments.as_str().is_some_and(is_patch);
    Ok(if is_bare_patch {
        json!({ "patch": arguments })
    } else {
        arguments
    })
}

// First words of a patch without `*** Begin Patch` or `---`.
const PATCH_HEADERS: [&str; 4] = [
    "*** Add File:",
    "*** Delete File:",
    "*** Update File:",
    "diff --git ",
];

/// Returns true if a text is a patch without JSON around it: a unified diff, or the format between
/// `*** Begin Patch` and `*** End Patch`.
fn is_patch(text: &str) -> bool {
    let begin = text.trim_start();
    if begin.starts_with(['{', '[', '"']) {
        return false;
    }
    let is_begun = PATCH_HEADERS.iter().any(|header| begin.starts_with(header));
    let is_envelope = || text.lines().any(|line| line.trim() == "*** Begin Patch");
    let is_diff = || {
        let mut pairs = text.lines().zip(text.lines().skip(1));
        pairs.any(|(old, new)| old.starts_with("--- ") && new.starts_with("+++ "))
    };
    is_begun || is_envelope() || is_diff()
}

/// Returns true if a text contains several JSON objects in a row.
fn has_several_objects(text: &str) -> bool {
    let sealed = split_characters::seal_surrogates(text);
    let mut values = serde_json::Deserializer::from_str(&sealed).into_iter::<Map<String, Value>>();
    matches!((values.next(), values.next()), (Some(Ok(_)), Some(Ok(_))))
}

/// Parses a count that a server writes as a number, a decimal or a text.
pub(super) fn parse_count(value: &Value) -> Option<u64> {
    match value {
        // The cast saturates.
        Value::Number(number) => number
            .as_u64()
            .or_else(|| number.as_f64().map(|count| count as u64)),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

//! Frames of an AWS event stream, as Bedrock sends them.

use aws_smithy_eventstream::frame::{DecodedFrame, MessageFrameDecoder};
use aws_smithy_types::event_stream::Message;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::{Buf as _, Bytes, BytesMut};
use futures::{Stream, StreamExt as _, stream};
use serde::Deserialize;

use super::failure::{AttemptFailure, ProviderError};

/// Decodes the frames of an AWS event stream; each contains one event of the model's dialect.
pub(super) fn decode_frames(
    chunks: impl Stream<Item = Result<Bytes, AttemptFailure>> + Send + Unpin,
) -> impl Stream<Item = Result<String, AttemptFailure>> + Send {
    let start = (chunks, BytesMut::new(), MessageFrameDecoder::new());
    stream::try_unfold(start, |(mut chunks, mut buffer, mut decoder)| async move {
        loop {
            let decoded = decoder.decode_frame(&mut buffer);
            match decoded.map_err(|_| AttemptFailure::Garbage("a broken frame"))? {
                DecodedFrame::Complete(message) => match event_of_frame(&message)? {
                    Some(event) => return Ok(Some((event, (chunks, buffer, decoder)))),
                    None => continue,
                },
                DecodedFrame::Incomplete => {}
            }
            match chunks.next().await {
                Some(chunk) => buffer.extend_from_slice(&chunk?),
                // The end of the stream interrupted this frame.
                None if !buffer.is_empty() => return Err(AttemptFailure::transient("interrupted its reply")),
                None => return Ok(None),
            }
        }
    })
}

#[derive(Deserialize)]
struct BedrockChunk {
    bytes: String,
}

/// Returns the event of a frame; `None` for an unknown kind.
fn event_of_frame(message: &Message) -> Result<Option<String>, AttemptFailure> {
    let header = |name: &str| {
        let found = message
            .headers()
            .iter()
            .find(|header| header.name().as_str() == name)?;
        Some(found.value().as_string().ok()?.as_str().to_owned())
    };
    if let Some(class) = header(":exception-type").or_else(|| header(":error-code")) {
        let said = ProviderError::read(message.payload().chunk(), Some(&class));
        return Err(said.in_stream());
    }
    if header(":event-type").as_deref() != Some("chunk") {
        return Ok(None);
    }
    let garbage = |_| AttemptFailure::Garbage("an unknown frame");
    let chunk: BedrockChunk = serde_json::from_slice(message.payload()).map_err(garbage)?;
    let bytes = STANDARD
        .decode(chunk.bytes)
        .map_err(|_| AttemptFailure::Garbage("an unknown frame"))?;
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| AttemptFailure::Garbage("an unknown frame"))
}

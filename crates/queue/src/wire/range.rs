//! Batched reads of a subject's messages, which any replica may answer.

use std::time::Duration;

use async_nats::{HeaderMap, StatusCode, header};
use domain::{ErrorCause, Timestamp};
use futures::StreamExt as _;
use tokio::time::{sleep, timeout};

use super::{StoredMessage, map_request_error};
use crate::{
    connection::{NatsConnection, REQUEST_TIMEOUT},
    error::Error,
};

/// Limits of the answer to one request.
#[derive(Clone, Copy)]
struct BatchSize {
    messages: usize,
    bytes: usize,
}

const LARGE_BATCH: BatchSize = BatchSize {
    messages: 256,
    bytes: 4 * 1024 * 1024,
};
// For readers that may be many at a time. The server always sends at least one message, however large.
const SMALL_BATCH: BatchSize = BatchSize {
    messages: 64,
    bytes: 1024 * 1024,
};

// Header of the end of a batch: number of messages that follow it. The client library has no constant for it.
const PENDING: &str = "Nats-Num-Pending";

/// Messages under a filter.
#[derive(Debug)]
pub(crate) struct MessageRange {
    /// Messages, oldest first.
    pub(crate) messages: Vec<StoredMessage>,
    /// Sequence of the last message that the leader had under the filter; 0 without any.
    pub(crate) last: u64,
}

/// Answer to one request.
struct MessageBatch {
    /// Messages, oldest first.
    messages: Vec<StoredMessage>,
    /// True if the server reports that no message follows.
    is_last: bool,
}

/// First message of a batch.
#[derive(Clone, Copy)]
enum BatchStart {
    At(u64),
    Since(Timestamp),
}

impl NatsConnection {
    /// Reads all messages of a subject after the sequence `after`, oldest first. Includes at least those that
    /// the leader had at the time of the call.
    pub(crate) async fn range(&self, stream: &str, subject: &str, after: u64) -> Result<MessageRange, Error> {
        let mut messages = Vec::new();
        let mut next = after.saturating_add(1);
        for attempt in 0..20 {
            let Some(last) = self.last(stream, subject).await? else {
                return Ok(MessageRange { messages, last: 0 });
            };
            while next <= last.sequence {
                let batch = self
                    .direct_batch(stream, subject, BatchStart::At(next), LARGE_BATCH)
                    .await?
                    .messages;
                let Some(newest) = batch.last() else { break };
                next = newest.sequence + 1;
                messages.extend(batch);
            }
            if next > last.sequence {
                return Ok(MessageRange {
                    messages,
                    last: last.sequence,
                });
            }
            // The replica that answered lags behind the leader, or the last message has just expired.
            sleep(Duration::from_millis(10 * attempt)).await;
        }
        Err(report_lagging_replicas(stream))
    }

    /// Reads all messages of a subject after a sequence like [`Self::range`], for a subject that usually has some.
    ///
    /// The only server of a stream knows which message is the last one, so its answer needs no second request.
    pub(crate) async fn expected_range(
        &self,
        stream: &str,
        subject: &str,
        after: u64,
    ) -> Result<MessageRange, Error> {
        if !self.stream_access(stream).can_read_leader {
            return self.range(stream, subject, after).await;
        }
        let start = BatchStart::At(after.saturating_add(1));
        let MessageBatch {
            mut messages,
            is_last,
        } = self.direct_batch(stream, subject, start, LARGE_BATCH).await?;
        // Messages of a mirror carry the mirror's name, and it may lack the newest ones.
        messages.retain(|message| read_stream_name(&message.headers) == Some(stream));
        let Some(newest) = messages.last().map(|newest| newest.sequence) else {
            return self.range(stream, subject, after).await;
        };
        if is_last {
            let last = newest;
            return Ok(MessageRange { messages, last });
        }
        let rest = self.range(stream, subject, newest).await?;
        messages.extend(rest.messages);
        Ok(MessageRange {
            messages,
            last: rest.last,
        })
    }

    /// Reads the next batch of a subject's messages from sequence `next` on, oldest first. It is empty only
    /// if the leader has no more.
    pub(crate) async fn page(
        &self,
        stream: &str,
        subject: &str,
        next: u64,
    ) -> Result<Vec<StoredMessage>, Error> {
        self.page_of(stream, subject, next, LARGE_BATCH).await
    }

    /// Reads like [`Self::page`], but at most 1 MiB or one message.
    pub(crate) async fn small_page(
        &self,
        stream: &str,
        subject: &str,
        next: u64,
    ) -> Result<Vec<StoredMessage>, Error> {
        self.page_of(stream, subject, next, SMALL_BATCH).await
    }

    async fn page_of(
        &self,
        stream: &str,
        subject: &str,
        next: u64,
        size: BatchSize,
    ) -> Result<Vec<StoredMessage>, Error> {
        for attempt in 0..20 {
            let batch = self
                .direct_batch(stream, subject, BatchStart::At(next), size)
                .await?
                .messages;
            if !batch.is_empty() {
                return Ok(batch);
            }
            // An empty batch may come from a replica that lags behind, so the leader decides.
            let last = self.last(stream, subject).await?;
            if last.is_none_or(|last| last.sequence < next) {
                return Ok(batch);
            }
            sleep(Duration::from_millis(10 * attempt)).await;
        }
        Err(report_lagging_replicas(stream))
    }

    /// Reads the first batch of a subject's messages that were stored at an instant or later; empty if none
    /// were.
    pub(crate) async fn page_since(
        &self,
        stream: &str,
        subject: &str,
        since: Timestamp,
    ) -> Result<Vec<StoredMessage>, Error> {
        let batch = self
            .direct_batch(stream, subject, BatchStart::Since(since), LARGE_BATCH)
            .await?;
        Ok(batch.messages)
    }

    /// Last message of a subject or filter, from any replica. The answer is the message itself, which costs the
    /// server a third of an answer of its API.
    ///
    /// Returns `None` also when a mirror of the stream answered. An operator may have made one for a copy of the
    /// records; it answers direct reads by default, and lacks the newest messages for a moment.
    pub(super) async fn direct_last(
        &self,
        stream: &str,
        subject: &str,
    ) -> Result<Option<StoredMessage>, Error> {
        let failed = |cause: ErrorCause| map_request_error("read", stream, cause);
        let wanted = serde_json::json!({ "last_by_subj": subject });
        let request = async_nats::Request::new()
            .payload(wanted.to_string().into())
            .timeout(Some(REQUEST_TIMEOUT));
        let asked = self
            .client
            .send_request(format!("$JS.API.DIRECT.GET.{stream}"), request);
        let answer = self.unless_lost(asked).await;
        let answer = answer.ok_or_else(|| failed("the connection was lost".into()))?;
        let reply = answer.map_err(|error| failed(error.into()))?;
        match reply.status {
            Some(StatusCode::NOT_FOUND) => Ok(None),
            Some(status) if status != StatusCode::OK => {
                Err(failed(format!("the server answered {status}").into()))
            }
            Some(_) | None => {
                if reply.headers.as_ref().and_then(read_stream_name) != Some(stream) {
                    return Ok(None);
                }
                parse_batch_message(stream, reply).map(Some)
            }
        }
    }

    /// Reads messages from a start on, in one request.
    async fn direct_batch(
        &self,
        stream: &str,
        subject: &str,
        start: BatchStart,
        size: BatchSize,
    ) -> Result<MessageBatch, Error> {
        let failed = |cause: ErrorCause| map_request_error("read", stream, cause);
        let inbox = self.client.new_inbox();
        let mut replies = self
            .client
            .subscribe(inbox.clone())
            .await
            .map_err(|error| failed(error.into()))?;
        let mut request = serde_json::json!({
            "batch": size.messages,
            "max_bytes": size.bytes,
            "next_by_subj": subject,
        });
        match start {
            BatchStart::At(sequence) => request["seq"] = sequence.into(),
            BatchStart::Since(instant) => request["start_time"] = instant.to_string().into(),
        }
        self.client
            .publish_with_reply(
                format!("$JS.API.DIRECT.GET.{stream}"),
                inbox,
                request.to_string().into(),
            )
            .await
            .map_err(|error| failed(error.into()))?;
        let mut messages = Vec::new();
        loop {
            let reply = timeout(REQUEST_TIMEOUT, replies.next())
                .await
                .map_err(|_| failed("no answer in time".into()))?
                .ok_or_else(|| failed("the connection closed".into()))?;
            match reply.status {
                // Status 204 ends a batch; 404 reports that no message follows.
                Some(StatusCode::NOT_FOUND) => {
                    let is_last = true;
                    return Ok(MessageBatch { messages, is_last });
                }
                Some(status) if status.as_u16() == 204 => {
                    let pending = reply.headers.as_ref().and_then(|headers| headers.get(PENDING));
                    let is_last = pending.is_some_and(|pending| pending.as_str() == "0");
                    return Ok(MessageBatch { messages, is_last });
                }
                Some(status) if status != StatusCode::OK => {
                    return Err(failed(format!("the server answered {status}").into()));
                }
                Some(_) | None => messages.push(parse_batch_message(stream, reply)?),
            }
        }
    }
}

/// Name of the stream that stores a message of a direct read.
fn read_stream_name(headers: &HeaderMap) -> Option<&str> {
    headers
        .get(header::NATS_STREAM)
        .map(async_nats::HeaderValue::as_str)
}

fn report_lagging_replicas(stream: &str) -> Error {
    Error::unavailable(format!("read {stream}"), "the replicas are behind the leader")
}

fn parse_batch_message(stream: &str, reply: async_nats::Message) -> Result<StoredMessage, Error> {
    let headers = reply.headers.unwrap_or_default();
    let text = |name: header::HeaderName| headers.get(name).map(async_nats::HeaderValue::as_str);
    let place = text(header::NATS_SEQUENCE)
        .and_then(|text| text.parse().ok())
        .zip(text(header::NATS_SUBJECT));
    let Some((sequence, subject)) = place else {
        return Err(Error::corrupt(
            format!("an answer of {stream}"),
            "it has no sequence or subject",
        ));
    };
    let subject = subject.to_owned();
    Ok(StoredMessage {
        subject,
        sequence,
        headers,
        payload: reply.payload,
    })
}

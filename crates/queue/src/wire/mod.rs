//! `JetStream` requests on which the rest of the crate is built: publish, compare-and-publish, read, delete.

mod chain;
mod range;

use std::time::Duration;

use async_nats::{
    HeaderMap, header,
    jetstream::{
        ErrorCode,
        consumer::{PullConsumer, pull},
        message::StreamMessage,
        publish::PublishAck,
        response::Response,
        stream::{LastRawMessageError, LastRawMessageErrorKind, Stream},
    },
};
use bytes::Bytes;
use data_encoding::BASE64URL_NOPAD;
use domain::{ErrorCause, Timestamp};
use futures::TryStreamExt as _;
use tokio::time::sleep;
use uuid::Uuid;

use crate::{
    connection::{NatsConnection, REQUEST_TIMEOUT},
    error::Error,
    trace,
};

pub(crate) use chain::ChainedMessage;
pub(crate) use range::MessageRange;

const TRIES: u32 = 3;
const RETRY_PAUSE: Duration = Duration::from_millis(200);
const NONCE: &str = "Journeyman-Nonce";
// Header for subjects other than the message's own in the comparison of the last sequence. The client library
// has no constant for it.
const EXPECTED_FILTER: &str = "Nats-Expected-Last-Subject-Sequence-Subject";

/// Text that no other message has. A message may contain it several times, so it is short.
pub fn create_nonce() -> String {
    BASE64URL_NOPAD.encode(Uuid::new_v4().as_bytes())
}

/// Destination of a compare-and-publish, and the filter of its comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublishTarget<'a> {
    pub(crate) stream: &'a str,
    pub(crate) subject: &'a str,
    /// Filter under which the last message must have the expected sequence; it selects at least `subject`.
    pub(crate) filter: &'a str,
}

impl<'a> PublishTarget<'a> {
    /// Target whose filter is its own subject.
    pub(crate) const fn own(stream: &'a str, subject: &'a str) -> Self {
        Self {
            stream,
            subject,
            filter: subject,
        }
    }
}

/// Message as a stream stores it.
#[derive(Debug)]
pub(crate) struct StoredMessage {
    pub(crate) subject: String,
    pub(crate) sequence: u64,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

impl StoredMessage {
    /// Time at which the server stored it. Only messages that were read directly have it.
    pub(crate) fn at(&self) -> Option<Timestamp> {
        Timestamp::parse(self.headers.get(header::NATS_TIME_STAMP)?.as_str())
    }

    fn has_nonce(&self, nonce: &str) -> bool {
        // Of a chain, only the last message has the header; the others have their nonce as message id.
        let own = self.headers.get(NONCE);
        own.or_else(|| self.headers.get(header::NATS_MESSAGE_ID))
            .is_some_and(|own| own.as_str() == nonce)
    }
}

/// Reason why a publish did not take place.
#[derive(Debug)]
pub(crate) enum PublishRefusal {
    /// The last sequence of the subject, or the last message id of the stream, is not the expected one.
    WrongLast,
    /// The subject already has its one message.
    SubjectFull,
    /// Any other failure.
    Failed(Error),
}

impl From<PublishRefusal> for Error {
    fn from(refusal: PublishRefusal) -> Self {
        match refusal {
            PublishRefusal::WrongLast => Self::Conflict,
            PublishRefusal::SubjectFull => Self::unavailable("publish", "the subject is full"),
            PublishRefusal::Failed(error) => error,
        }
    }
}

/// Result of a compare-and-publish.
#[derive(Debug)]
pub(crate) enum CompareOutcome {
    /// Our message is the last, at this sequence.
    Written(u64),
    /// Another writer's message is the last; `None` if the subject is empty although a message was expected.
    Lost(Option<StoredMessage>),
}

/// Headers that let the server store a message only if the last one of its subject has this sequence.
pub(crate) fn build_succeeding_headers(sequence: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, sequence.to_string());
    headers
}

impl NatsConnection {
    /// Publishes a message and waits for the acknowledgement, with three attempts while the server is
    /// unavailable.
    ///
    /// So a message must be one that may be stored twice, or that the stream refuses the second time.
    pub(crate) async fn publish(
        &self,
        subject: &str,
        mut headers: HeaderMap,
        payload: Bytes,
    ) -> Result<PublishAck, PublishRefusal> {
        if headers.get("traceparent").is_none() {
            trace::add_trace_context(&mut headers);
        }
        self.check_room(subject, payload.len())
            .map_err(PublishRefusal::Failed)?;
        let mut tries = 1;
        loop {
            match self.publish_once(subject, headers.clone(), payload.clone()).await {
                Err(PublishRefusal::Failed(Error::Unavailable { .. })) if tries < TRIES => {
                    tries += 1;
                    sleep(RETRY_PAUSE).await;
                }
                outcome => return outcome,
            }
        }
    }

    async fn publish_once(
        &self,
        subject: &str,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<PublishAck, PublishRefusal> {
        let failed = |cause: ErrorCause| PublishRefusal::Failed(Error::unavailable("publish", cause));
        let request = async_nats::Request::new()
            .headers(headers)
            .payload(payload)
            .timeout(Some(REQUEST_TIMEOUT));
        let answer = self
            .unless_lost(self.client.send_request(subject.to_owned(), request))
            .await;
        let reply = answer.ok_or_else(|| failed("the connection was lost".into()))?;
        let reply = reply.map_err(|error| failed(error.into()))?;
        match serde_json::from_slice(&reply.payload).map_err(|error| failed(error.into()))? {
            Response::Ok(ack) => Ok(ack),
            Response::Err { error } => Err(match error.error_code() {
                ErrorCode::STREAM_WRONG_LAST_SEQUENCE
                | ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT
                | ErrorCode::STREAM_WRONG_LAST_MESSAGE_ID => PublishRefusal::WrongLast,
                // The server uses this code also for a failed store, so its text decides.
                ErrorCode::STREAM_STORE_FAILED if error.to_string().contains("per subject") => {
                    PublishRefusal::SubjectFull
                }
                ErrorCode::STREAM_STORE_FAILED if error.to_string().contains("maximum bytes") => {
                    PublishRefusal::Failed(Error::full(subject))
                }
                code if is_without_room(code) => PublishRefusal::Failed(Error::full(subject)),
                _ => failed(error.into()),
            }),
        }
    }

    /// Publishes only if the last sequence under the target's filter is `expected`; 0 expects no message.
    ///
    /// After a lost acknowledgement the last message is read from the leader. If it has our nonce, it was
    /// written.
    pub(crate) async fn compare_and_publish(
        &self,
        target: &PublishTarget<'_>,
        expected: u64,
        nonce: &str,
        mut headers: HeaderMap,
        payload: Bytes,
    ) -> Result<CompareOutcome, Error> {
        let PublishTarget {
            stream,
            subject,
            filter,
        } = target;
        headers.insert(header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, expected.to_string());
        if filter != subject {
            headers.insert(EXPECTED_FILTER, *filter);
        }
        headers.insert(NONCE, nonce);
        // Each round that does not return waits for a competing write; ten rounds are half a second at most,
        // without retries.
        for _ in 0..10 {
            match self.publish(subject, headers.clone(), payload.clone()).await {
                Ok(ack) => return Ok(CompareOutcome::Written(ack.sequence)),
                Err(PublishRefusal::WrongLast) => {}
                Err(refusal) => return Err(refusal.into()),
            }
            let last = self.last(stream, filter).await?;
            match last {
                Some(last) if last.has_nonce(nonce) => return Ok(CompareOutcome::Written(last.sequence)),
                // The server refused it although no newer message is visible: a competing write is not
                // applied yet.
                ref last if last.as_ref().map_or(0, |last| last.sequence) == expected => {
                    sleep(Duration::from_millis(50)).await;
                }
                last => return Ok(CompareOutcome::Lost(last)),
            }
        }
        Err(Error::unavailable("publish", "a competing write is not settled"))
    }

    /// Last message of a subject or filter, from the stream's leader.
    pub(crate) async fn last(&self, stream: &str, subject: &str) -> Result<Option<StoredMessage>, Error> {
        if self.stream_access(stream).can_read_leader
            && let Some(found) = self.direct_last(stream, subject).await?
        {
            return Ok(Some(found));
        }
        // Only the leader answers the API, so it decides about a message that is missing elsewhere.
        let handle = self.stream(stream, "read").await?;
        parse_stored_message(stream, handle.get_last_raw_message_by_subject(subject).await)
    }

    /// Message at a sequence; `None` if it does not exist, or was removed.
    pub(crate) async fn at(&self, stream: &str, sequence: u64) -> Result<Option<StoredMessage>, Error> {
        let handle = self.stream(stream, "read").await?;
        parse_stored_message(stream, handle.get_raw_message(sequence).await)
    }

    /// First message of a subject or filter from a sequence on, from the stream's leader.
    pub(crate) async fn first(
        &self,
        stream: &str,
        subject: &str,
        from: u64,
    ) -> Result<Option<StoredMessage>, Error> {
        let handle = self.stream(stream, "read").await?;
        parse_stored_message(
            stream,
            handle.get_first_raw_message_by_subject(subject, from).await,
        )
    }

    /// Deletes the message at a sequence; returns false if it does not exist.
    pub(crate) async fn forget(&self, stream: &str, sequence: u64) -> Result<bool, Error> {
        if self.at(stream, sequence).await?.is_none() {
            return Ok(false);
        }
        self.delete(stream, sequence).await
    }

    /// Deletes a message that existed a moment ago; returns false if another process deleted it meanwhile.
    pub(crate) async fn delete(&self, stream: &str, sequence: u64) -> Result<bool, Error> {
        const DOING: &str = "delete in";
        let handle = self.stream(stream, DOING).await?;
        match handle.delete_message(sequence).await {
            Ok(deleted) => Ok(deleted),
            // Another process deleted or replaced it at this moment, so the server's error means success.
            Err(_) if self.at(stream, sequence).await?.is_none() => Ok(false),
            Err(error) => Err(map_request_error(DOING, stream, error)),
        }
    }

    /// Deletes all messages of a subject or filter.
    pub(crate) async fn purge(&self, stream: &str, subject: &str) -> Result<(), Error> {
        const DOING: &str = "purge";
        let handle = self.stream(stream, DOING).await?;
        let purged = handle.purge().filter(subject).await;
        purged
            .map(drop)
            .map_err(|error| map_request_error(DOING, stream, error))
    }

    /// Subjects of a stream under a filter.
    pub(crate) async fn subjects(&self, stream: &str, filter: &str) -> Result<Vec<String>, Error> {
        const DOING: &str = "list subjects of";
        let handle = self.stream(stream, DOING).await?;
        let found = handle.info_with_subjects(filter).await;
        let found = found.map_err(|error| map_request_error(DOING, stream, error))?;
        found
            .map_ok(|(subject, _)| subject)
            .map_err(|error| map_request_error(DOING, stream, error))
            .try_collect()
            .await
    }

    /// Handle of a stream, without a request to check that it exists; `doing` is for errors.
    async fn stream(&self, stream: &str, doing: &str) -> Result<Stream<()>, Error> {
        let handle = self.context.get_stream_no_info(stream).await;
        handle.map_err(|error| map_request_error(doing, stream, error))
    }

    /// Handle of a durable consumer that the topology defines.
    pub(crate) async fn consumer(&self, stream: &str, durable: &str) -> Result<PullConsumer, Error> {
        self.context
            .get_consumer_from_stream::<pull::Config, _, _>(durable, stream)
            .await
            .map_err(|error| Error::unavailable(format!("consumer {durable} of {stream}"), error))
    }
}

/// True for the errors of a server whose file store has no room.
pub(crate) fn is_without_room(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::INSUFFICIENT_RESOURCES
            | ErrorCode::STORAGE_RESOURCES_EXCEEDED
            | ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
    )
}

/// Maps an answer to a message. A missing message is `None`, not an error.
fn parse_stored_message(
    stream: &str,
    answer: Result<StreamMessage, LastRawMessageError>,
) -> Result<Option<StoredMessage>, Error> {
    match answer {
        Ok(message) => Ok(Some(StoredMessage {
            subject: message.subject.to_string(),
            sequence: message.sequence,
            headers: message.headers,
            payload: message.payload,
        })),
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(map_request_error("read", stream, error)),
    }
}

fn map_request_error(doing: &str, stream: &str, error: impl Into<ErrorCause>) -> Error {
    Error::unavailable(format!("{doing} {stream}"), error)
}

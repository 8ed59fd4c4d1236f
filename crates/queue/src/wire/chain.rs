//! Chains: messages of one subject that follow each other, published without a wait in between.

use async_nats::{HeaderMap, header};
use bytes::Bytes;
use futures::future;

use super::{CompareOutcome, NONCE, PublishTarget};
use crate::{connection::NatsConnection, error::Error, trace};

/// Message of a chain.
#[derive(Debug)]
pub(crate) struct ChainedMessage {
    /// Text that no other message has.
    pub(crate) nonce: String,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

/// Start of a chain that is stored.
struct StoredStart {
    /// Number of stored messages.
    count: usize,
    /// Stream sequence of the last one, or the expected sequence.
    last: u64,
}

impl NatsConnection {
    /// Publishes a chain, whose first message is compared like in [`Self::compare_and_publish`]. Each later one
    /// is stored only after its predecessor. Returns the sequence of the last message.
    ///
    /// After an error a start of the chain may be stored. The same chain may be published again then.
    pub(crate) async fn compare_and_publish_chain(
        &self,
        (stream, subject): (&str, &str),
        expected: u64,
        chain: &[ChainedMessage],
    ) -> Result<CompareOutcome, Error> {
        let target = PublishTarget::own(stream, subject);
        let mut stored = StoredStart {
            count: 0,
            last: expected,
        };
        if chain.len() > 1 && self.stream_access(stream).can_compare_ids {
            stored = self.publish_together(subject, expected, chain).await?;
        }
        // Follows with the messages that the server refused because another subject got one in between, and
        // with those whose acknowledgement was lost.
        while let Some(next) = chain.get(stored.count) {
            let (headers, payload) = (next.headers.clone(), next.payload.clone());
            let written = self.compare_and_publish(&target, stored.last, &next.nonce, headers, payload);
            stored = match written.await? {
                CompareOutcome::Written(sequence) => StoredStart {
                    count: stored.count + 1,
                    last: sequence,
                },
                CompareOutcome::Lost(found) => {
                    // An earlier attempt may have stored later messages of the chain, and with them all
                    // before.
                    let ours = chain
                        .iter()
                        .rposition(|own| found.as_ref().is_some_and(|found| found.has_nonce(&own.nonce)));
                    match (ours, found) {
                        (Some(at), Some(found)) if at > stored.count => StoredStart {
                            count: at + 1,
                            last: found.sequence,
                        },
                        (_, found) => return Ok(CompareOutcome::Lost(found)),
                    }
                }
            };
        }
        Ok(CompareOutcome::Written(stored.last))
    }

    /// Sends all messages of a chain, then waits for the acknowledgements.
    ///
    /// The sequence of a message is unknown until it is stored. So each later message names the id of its
    /// predecessor: the server stores it only if the predecessor is the last message of the whole stream.
    async fn publish_together(
        &self,
        subject: &str,
        expected: u64,
        chain: &[ChainedMessage],
    ) -> Result<StoredStart, Error> {
        let mut before: Option<&ChainedMessage> = None;
        let mut publishes = Vec::with_capacity(chain.len());
        for (at, message) in chain.iter().enumerate() {
            self.check_room(subject, message.payload.len())?;
            let mut headers = message.headers.clone();
            trace::add_trace_context(&mut headers);
            match before {
                None => headers.insert(header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, expected.to_string()),
                Some(before) => headers.insert(header::NATS_EXPECTED_LAST_MESSAGE_ID, before.nonce.as_str()),
            }
            // The server keeps every id for the duplicate window, so the last message, which no other one
            // names, has none.
            if at + 1 < chain.len() {
                headers.insert(header::NATS_MESSAGE_ID, message.nonce.as_str());
            } else {
                headers.insert(NONCE, message.nonce.as_str());
            }
            publishes.push(self.publish_once(subject, headers, message.payload.clone()));
            before = Some(message);
        }
        // Polled in this order, so the requests leave in it. Another order is harmless: the server refuses
        // every message that comes before its predecessor.
        let answers = future::join_all(publishes).await;
        let mut stored = StoredStart {
            count: 0,
            last: expected,
        };
        // An acknowledgement counts for all messages before, also when theirs is lost.
        for (at, answer) in answers.iter().enumerate() {
            if let Ok(ack) = answer {
                stored = StoredStart {
                    count: at + 1,
                    last: ack.sequence,
                };
            }
        }
        Ok(stored)
    }
}

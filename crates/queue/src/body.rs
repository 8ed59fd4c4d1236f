//! Bodies of messages, and the header of a delivery with all fields except its body.
//!
//! A body over 512 KiB is stored as an object, and the message carries the reference.

use async_nats::HeaderMap;
use bytes::Bytes;
use domain::{
    ObjectRef, RecordError, RecordKind, ServiceOrigin, StoredRecord, Timestamp, cause::format_error_chain,
    record_format,
};
use serde::{Deserialize, Serialize};

use crate::{error::Error, objects::ContentStore, unreadable_record::UnreadableRecord, wire};

// NATS servers accept 1 MiB per message by default, headers included.
pub(crate) const INLINE_MAX_BYTES: usize = 512 * 1024;
const BODY_HEADER: &str = "Journeyman-Body";
const OBJECT: &str = "object";

/// Payload to publish for a body. Stores a large body as an object and marks the headers.
pub(crate) async fn pack_body(
    objects: &ContentStore,
    headers: &mut HeaderMap,
    body: Bytes,
) -> Result<Bytes, Error> {
    if body.len() <= INLINE_MAX_BYTES {
        return Ok(body);
    }
    let object = match objects.put(body.clone()).await {
        // The object store is the first to be full; the stream of the record may have room.
        Err(Error::Full { .. }) if body.len() <= objects.connection.largest_payload() => return Ok(body),
        stored => stored?,
    };
    headers.insert(BODY_HEADER, OBJECT);
    let reference =
        serde_json::to_vec(&object).map_err(|error| Error::corrupt("an object reference", error))?;
    Ok(reference.into())
}

/// True when the payload of a message is a reference to its body.
pub(crate) fn is_reference(headers: &HeaderMap) -> bool {
    headers
        .get(BODY_HEADER)
        .is_some_and(|mark| mark.as_str() == OBJECT)
}

/// Body of a message, read from the object store if the payload is a reference.
pub(crate) async fn unpack_body(
    objects: &ContentStore,
    headers: Option<&HeaderMap>,
    payload: Bytes,
) -> Result<Bytes, Error> {
    if !headers.is_some_and(is_reference) {
        return Ok(payload);
    }
    let object: ObjectRef =
        serde_json::from_slice(&payload).map_err(|error| Error::corrupt("an object reference", error))?;
    objects.get(&object).await
}

/// Reads the record in a stored message.
pub(crate) async fn read_record<T: StoredRecord>(
    objects: &ContentStore,
    stored: wire::StoredMessage,
) -> Result<T, Error> {
    let wire::StoredMessage {
        subject,
        sequence,
        headers,
        payload,
    } = stored;
    let body = unpack_body(objects, Some(&headers), payload).await?;
    decode_record(objects, &body, || format!("{subject} at {sequence}"))
}

/// Reads the record in a stored message. Returns the raw bytes with the reason when it is not a `T`.
pub(crate) async fn read_record_or_bytes<T: StoredRecord>(
    objects: &ContentStore,
    stream: &str,
    stored: wire::StoredMessage,
) -> Result<Result<T, UnreadableRecord>, Error> {
    let (sequence, payload) = (stored.sequence, stored.payload.clone());
    let unreadable = |problem: RecordError, bytes: Bytes| {
        let stream = stream.to_owned();
        Ok(Err(UnreadableRecord {
            stream,
            sequence,
            kind: T::KIND,
            problem,
            bytes,
        }))
    };
    let body = match unpack_body(objects, Some(&stored.headers), stored.payload).await {
        Ok(body) => body,
        // A missing or damaged object makes only this record unreadable.
        Err(error @ Error::Corrupt { .. }) => {
            return unreadable(RecordError::Broken(format_error_chain(&error)), payload);
        }
        Err(error) => return Err(error),
    };
    match record_format::decode_stored_as(&body, objects.newest_format(T::KIND)) {
        Ok(record) => Ok(Ok(record)),
        Err(problem) => unreadable(problem, body),
    }
}

/// Decodes a record from the body of a message; `what` names it in errors.
pub(crate) fn decode_record<T: StoredRecord>(
    objects: &ContentStore,
    body: &[u8],
    what: impl FnOnce() -> String,
) -> Result<T, Error> {
    record_format::decode_stored_as(body, objects.newest_format(T::KIND))
        .map_err(|problem| Error::undecodable(what(), T::KIND, problem))
}

/// Encodes a record as the body of a message; `what` names it in errors.
pub(crate) fn encode_record<T: StoredRecord>(what: &str, record: &T) -> Result<Vec<u8>, Error> {
    record_format::encode_stored_record(record).map_err(|error| Error::corrupt(what, error))
}

const DELIVERY_HEADER: &str = "Journeyman-Delivery";

/// Fields of a delivery except its body.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DeliveryHeader {
    pub(crate) source: ServiceOrigin,
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) received_at: Timestamp,
}

impl StoredRecord for DeliveryHeader {
    const KIND: RecordKind = RecordKind::Delivery;
}

impl DeliveryHeader {
    pub(crate) fn write(&self, headers: &mut HeaderMap) -> Result<(), Error> {
        headers.insert(
            DELIVERY_HEADER,
            record_format::encode_stored_text(self).map_err(|error| Error::corrupt("a delivery", error))?,
        );
        Ok(())
    }

    /// Reads the header of a message; `what` names it in errors.
    pub(crate) fn read(headers: Option<&HeaderMap>, what: &str) -> Result<Self, Error> {
        let text = headers
            .and_then(|headers| headers.get(DELIVERY_HEADER))
            .ok_or_else(|| Error::corrupt(what, "the delivery's header is missing"))?;
        record_format::decode_stored_record(text.as_str().as_bytes())
            .map_err(|problem| Error::undecodable(what.to_owned(), Self::KIND, problem))
    }
}

/// True when a message is a delivery or a dead letter about one.
pub(crate) fn is_delivery(headers: &HeaderMap) -> bool {
    headers.get(DELIVERY_HEADER).is_some()
}

/// Copies the header of one message to another.
pub(crate) fn copy_delivery_header(from: Option<&HeaderMap>, to: &mut HeaderMap) {
    if let Some(meta) = from.and_then(|headers| headers.get(DELIVERY_HEADER)) {
        to.insert(DELIVERY_HEADER, meta.clone());
    }
}

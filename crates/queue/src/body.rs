//! Bodies of messages. A body over 512 KiB is stored as an object, and the message carries the reference.

use async_nats::HeaderMap;
use bytes::Bytes;
use domain::{ObjectRef, Stored, Undecodable, cause::chain, stored};

use crate::{error::Error, objects::Objects, unreadable::Unreadable, wire};

// NATS servers accept 1 MiB per message by default, headers included.
pub(crate) const INLINE_MAX_BYTES: usize = 512 * 1024;
const HEADER: &str = "Journeyman-Body";
const OBJECT: &str = "object";

/// Payload to publish for a body. Stores a large body as an object and marks the headers.
pub(crate) async fn pack(objects: &Objects, headers: &mut HeaderMap, body: Bytes) -> Result<Bytes, Error> {
    if body.len() <= INLINE_MAX_BYTES {
        return Ok(body);
    }
    let object = match objects.put(body.clone()).await {
        // The object store is the first to be full; the stream of the record may have room.
        Err(Error::Full { .. }) if body.len() <= objects.connection.largest_payload() => return Ok(body),
        stored => stored?,
    };
    headers.insert(HEADER, OBJECT);
    let reference =
        serde_json::to_vec(&object).map_err(|error| Error::corrupt("an object reference", error))?;
    Ok(reference.into())
}

/// True when the payload of a message is a reference to its body.
pub(crate) fn is_reference(headers: &HeaderMap) -> bool {
    headers.get(HEADER).is_some_and(|mark| mark.as_str() == OBJECT)
}

/// Body of a message, read from the object store if the payload is a reference.
pub(crate) async fn unpack(
    objects: &Objects,
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
pub(crate) async fn record<T: Stored>(objects: &Objects, stored: wire::Stored) -> Result<T, Error> {
    let wire::Stored {
        subject,
        sequence,
        headers,
        payload,
    } = stored;
    let body = unpack(objects, Some(&headers), payload).await?;
    decode(objects, &body, || format!("{subject} at {sequence}"))
}

/// Reads the record in a stored message. Returns the raw bytes with the reason when it is not a `T`.
pub(crate) async fn record_or_bytes<T: Stored>(
    objects: &Objects,
    stream: &str,
    stored: wire::Stored,
) -> Result<Result<T, Unreadable>, Error> {
    let (sequence, payload) = (stored.sequence, stored.payload.clone());
    let unreadable = |problem: Undecodable, bytes: Bytes| {
        let stream = stream.to_owned();
        Ok(Err(Unreadable {
            stream,
            sequence,
            kind: T::KIND,
            problem,
            bytes,
        }))
    };
    let body = match unpack(objects, Some(&stored.headers), stored.payload).await {
        Ok(body) => body,
        // A missing or damaged object makes only this record unreadable.
        Err(error @ Error::Corrupt { .. }) => {
            return unreadable(Undecodable::Broken(chain(&error)), payload);
        }
        Err(error) => return Err(error),
    };
    match stored::decode_as(&body, objects.newest_format(T::KIND)) {
        Ok(record) => Ok(Ok(record)),
        Err(problem) => unreadable(problem, body),
    }
}

/// Decodes a record from the body of a message; `what` names it in errors.
pub(crate) fn decode<T: Stored>(
    objects: &Objects,
    body: &[u8],
    what: impl FnOnce() -> String,
) -> Result<T, Error> {
    stored::decode_as(body, objects.newest_format(T::KIND))
        .map_err(|problem| Error::undecodable(what(), T::KIND, problem))
}

/// Encodes a record as the body of a message; `what` names it in errors.
pub(crate) fn encode<T: Stored>(what: &str, record: &T) -> Result<Vec<u8>, Error> {
    stored::encode(record).map_err(|error| Error::corrupt(what, error))
}

//! Bodies over 512 KiB go to the object store; the message then carries the reference.

use async_nats::HeaderMap;
use bytes::Bytes;
use domain::ObjectRef;
use serde::{Serialize, de::DeserializeOwned};

use crate::{error::Error, objects::Objects, unreadable::Unreadable, wire::Stored};

/// The largest body that a message carries itself.
pub(crate) const INLINE_MAX_BYTES: usize = 512 * 1024;
const HEADER: &str = "Journeyman-Body";
const OBJECT: &str = "object";

/// The payload to publish for a body; marks the headers when it is a reference.
pub(crate) async fn pack(objects: &Objects, headers: &mut HeaderMap, body: Bytes) -> Result<Bytes, Error> {
    if body.len() <= INLINE_MAX_BYTES {
        return Ok(body);
    }
    let object = objects.put(body).await?;
    headers.insert(HEADER, OBJECT);
    Ok(encode("an object reference", &object)?.into())
}

/// Whether a message carries the reference to its body.
pub(crate) fn is_reference(headers: &HeaderMap) -> bool {
    headers.get(HEADER).is_some_and(|mark| mark.as_str() == OBJECT)
}

/// The body of a message.
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

/// The record in a stored message.
pub(crate) async fn record<T: DeserializeOwned>(objects: &Objects, stored: Stored) -> Result<T, Error> {
    let Stored {
        subject,
        sequence,
        headers,
        payload,
    } = stored;
    let body = unpack(objects, Some(&headers), payload).await?;
    serde_json::from_slice(&body).map_err(|error| Error::corrupt(format!("{subject} at {sequence}"), error))
}

/// The record in a stored message, or what there is of it when it is not a `T`.
pub(crate) async fn record_or_bytes<T: DeserializeOwned>(
    objects: &Objects,
    stream: &str,
    stored: Stored,
) -> Result<Result<T, Unreadable>, Error> {
    let (sequence, payload) = (stored.sequence, stored.payload.clone());
    let unreadable = |problem: String, bytes: Bytes| {
        let stream = stream.to_owned();
        Ok(Err(Unreadable {
            stream,
            sequence,
            problem,
            bytes,
        }))
    };
    let body = match unpack(objects, Some(&stored.headers), stored.payload).await {
        Ok(body) => body,
        Err(error @ Error::Corrupt { .. }) => return unreadable(error.to_string(), payload),
        Err(error) => return Err(error),
    };
    match serde_json::from_slice(&body) {
        Ok(record) => Ok(Ok(record)),
        Err(error) => unreadable(error.to_string(), body),
    }
}

/// A record as JSON.
pub(crate) fn encode<T: Serialize>(what: &str, record: &T) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(record).map_err(|error| Error::corrupt(what, error))
}

//! Upload of an object in parts, without holding all bytes in memory.

use std::{collections::VecDeque, future::IntoFuture as _};

use async_nats::jetstream::context::{PublishAckFuture, PublishError};
use bytes::{Bytes, BytesMut};
use data_encoding::HEXLOWER;
use domain::{ObjectRef, cause::format_error_chain};
use tokio::time::timeout;

use crate::{
    error::Error,
    names::object_chunks,
    object_collection::UnreferencedObject,
    objects::{CHUNK_BYTES, ContentStore, TRANSFER_TIMEOUT, report_late_transfer},
};

// A window of 1 MiB on the way to the server.
const MOST_UNACKNOWLEDGED: usize = 8;
// Chunks between two requests for the free room in the store.
const CHUNKS_BETWEEN_CHECKS: usize = 8;
const DOING: &str = "store an object in parts";

/// Object that was uploaded in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    /// Name (SHA-256) and size.
    pub object: ObjectRef,
    /// True when this upload stored the object. Otherwise it existed before, and other records may name it.
    pub is_new: bool,
    /// Stream sequence of its description.
    sequence: u64,
}

/// Upload in progress. No record can name the object before [`ObjectUpload::finish`].
///
/// The chunks of a dropped upload are removed with the torn objects, see [`ContentStore::remove_torn`].
pub struct ObjectUpload {
    objects: ContentStore,
    /// Last part of the subject of its chunks.
    id: String,
    rest: BytesMut,
    digest: ring::digest::Context,
    size: u64,
    chunks: usize,
    unacknowledged: VecDeque<PublishAckFuture>,
}

impl ContentStore {
    /// Begins an upload.
    pub fn upload(&self) -> ObjectUpload {
        ObjectUpload {
            objects: self.clone(),
            id: uuid::Uuid::new_v4().simple().to_string(),
            rest: BytesMut::new(),
            digest: ring::digest::Context::new(&ring::digest::SHA256),
            size: 0,
            chunks: 0,
            unacknowledged: VecDeque::new(),
        }
    }

    /// Removes an object that this process uploaded, unless it was stored before or since by another upload.
    /// Returns true when this call removed it.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; the collector removes the remainder.
    pub async fn remove_stored(&self, stored: &StoredObject) -> Result<bool, Error> {
        if !stored.is_new {
            return Ok(false);
        }
        let garbage = UnreferencedObject {
            name: stored.object.sha256.clone(),
            size_bytes: stored.object.size_bytes,
            sequence: stored.sequence,
        };
        self.remove(&garbage).await
    }
}

impl ObjectUpload {
    /// Number of bytes that were pushed.
    pub const fn size_bytes(&self) -> u64 {
        self.size
    }

    /// Appends bytes to the object and sends each full chunk of 128 KiB.
    ///
    /// # Errors
    /// [`Error::Unavailable`] or [`Error::Full`]; the upload cannot be finished afterwards.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.digest.update(bytes);
        self.size += bytes.len() as u64;
        self.rest.extend_from_slice(bytes);
        while self.rest.len() >= CHUNK_BYTES {
            let chunk = self.rest.split_to(CHUNK_BYTES).freeze();
            self.send(chunk).await?;
        }
        Ok(())
    }

    /// Stores the remaining bytes and the description, so that the object can be read by its content hash.
    /// The dates of an object that exists already are renewed.
    ///
    /// # Errors
    /// [`Error::Unavailable`] or [`Error::Full`]; the chunks are removed then.
    pub async fn finish(mut self) -> Result<StoredObject, Error> {
        let finished = timeout(TRANSFER_TIMEOUT, Box::pin(self.complete()));
        let finished = failpoint::around("queue.object.finish", finished).await;
        match finished.map_err(|_| report_late_transfer(DOING)).flatten() {
            Ok(stored) => Ok(stored),
            Err(error) => {
                self.discard().await;
                Err(error)
            }
        }
    }

    /// Removes the chunks of an unfinished upload. Failures are logged: the collector removes the remainder.
    pub async fn discard(mut self) {
        // A chunk that is still on its way would arrive after the removal.
        while !self.unacknowledged.is_empty() {
            let stored = self.await_acknowledgement().await;
            // A full store answers each chunk; after any other error no more answers are expected.
            if stored.is_err_and(|error| !matches!(error, Error::Full { .. })) {
                break;
            }
        }
        let chunks = object_chunks(&self.id);
        if let Err(error) = self.objects.remove_chunks(&chunks).await {
            tracing::debug!(
                error = %format_error_chain(&error),
                "chunks of an object that is not wanted stay until they are collected"
            );
        }
    }

    async fn complete(&mut self) -> Result<StoredObject, Error> {
        if !self.rest.is_empty() {
            let last = self.rest.split().freeze();
            self.send(last).await?;
        }
        while !self.unacknowledged.is_empty() {
            self.await_acknowledgement().await?;
        }
        // Only all chunks together show that the object exists already: its name is the hash of the whole
        // content.
        let digest = self.digest.clone().finish();
        let object = ObjectRef {
            sha256: HEXLOWER.encode(digest.as_ref()),
            size_bytes: self.size,
        };
        if let Some(sequence) = self.objects.renew(&object).await? {
            let chunks = object_chunks(&self.id);
            self.objects.remove_chunks(&chunks).await?;
            return Ok(StoredObject {
                object,
                is_new: false,
                sequence,
            });
        }
        let id = self.id.clone();
        let sequence = self.objects.describe(&object, id, self.chunks).await?;
        Ok(StoredObject {
            object,
            is_new: true,
            sequence,
        })
    }

    /// Sends a chunk without waiting for its acknowledgement. The server stores messages of one connection in
    /// the order of their sending.
    async fn send(&mut self, chunk: Bytes) -> Result<(), Error> {
        if self.unacknowledged.len() >= MOST_UNACKNOWLEDGED {
            self.await_acknowledgement().await?;
        }
        // The total size is unknown, so room for the next MiB is checked once per MiB.
        if self.chunks.is_multiple_of(CHUNKS_BETWEEN_CHECKS) {
            let next = (CHUNKS_BETWEEN_CHECKS * CHUNK_BYTES) as u64;
            // Above 1 MiB the object counts as large, for which a part of the store stays closed.
            let bytes = if self.size > next { next + 1 } else { self.size };
            self.objects.connection.check_object_room(bytes).await?;
        }
        let context = &self.objects.connection.context;
        let sent = context.publish(object_chunks(&self.id), chunk).await;
        let sent = sent.map_err(|error| Error::unavailable(DOING, error))?;
        self.unacknowledged.push_back(sent);
        self.chunks += 1;
        Ok(())
    }

    async fn await_acknowledgement(&mut self) -> Result<(), Error> {
        let Some(sent) = self.unacknowledged.pop_front() else {
            return Ok(());
        };
        match self.objects.connection.unless_lost(sent.into_future()).await {
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) if is_about_full_store(&error) => Err(Error::full("an object")),
            Some(Err(error)) => Err(Error::unavailable(DOING, error)),
            None => Err(Error::unavailable(DOING, "the connection was lost")),
        }
    }
}

/// Recognizes a refusal for lack of room. The client library keeps the text of the server's error, not its
/// code.
fn is_about_full_store(error: &PublishError) -> bool {
    const WORDS: [&str; 4] = [
        "maximum bytes exceeded",
        "insufficient resources",
        "insufficient storage",
        "resource limits exceeded",
    ];
    let words = format_error_chain(error);
    WORDS.iter().any(|full| words.contains(full))
}

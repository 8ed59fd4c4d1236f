//! Storing an object whose bytes come in parts, without holding all of them.

use std::{collections::VecDeque, future::IntoFuture as _};

use async_nats::jetstream::context::{PublishAckFuture, PublishError};
use bytes::{Bytes, BytesMut};
use domain::{ObjectRef, cause::chain};
use tokio::time::timeout;

use crate::{
    collect::Garbage,
    digest::hex,
    error::Error,
    names::object_chunks,
    objects::{CHUNK_BYTES, Objects, TRANSFER_TIMEOUT, late},
};

/// Messages that the server has not acknowledged yet.
const MOST_UNACKNOWLEDGED: usize = 8;
/// Messages after which the room in the store is asked for again.
const CHUNKS_BETWEEN_CHECKS: usize = 8;
const DOING: &str = "store an object in parts";

/// An object that was stored in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    /// Its name and size.
    pub object: ObjectRef,
    /// True when this upload brought it; otherwise it was there already, and other records may name it.
    pub is_new: bool,
    /// Sequence of its description.
    sequence: u64,
}

/// An object on its way. Nothing names it before [`ObjectUpload::finish`]; what is left of one that was dropped goes with the
/// torn objects.
pub struct ObjectUpload {
    objects: Objects,
    /// The place of its chunks.
    id: String,
    rest: BytesMut,
    digest: ring::digest::Context,
    size: u64,
    chunks: usize,
    unacknowledged: VecDeque<PublishAckFuture>,
}

impl Objects {
    /// Begins an object whose bytes come in parts.
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

    /// Removes an object unless anybody stored the same content before or since; true when it is gone by this call.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; the collector finds what is left of it.
    pub async fn remove_stored(&self, stored: &StoredObject) -> Result<bool, Error> {
        if !stored.is_new {
            return Ok(false);
        }
        let garbage = Garbage {
            name: stored.object.sha256.clone(),
            size_bytes: stored.object.size_bytes,
            sequence: stored.sequence,
        };
        self.remove(&garbage).await
    }
}

impl ObjectUpload {
    /// Bytes so far.
    pub const fn size_bytes(&self) -> u64 {
        self.size
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; the object cannot be finished then.
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

    /// Makes the object known by its content; one that is there already is dated anew.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; the chunks are taken back then.
    pub async fn finish(mut self) -> Result<StoredObject, Error> {
        let finished = timeout(TRANSFER_TIMEOUT, Box::pin(self.complete()));
        let finished = failpoint::around("queue.object.finish", finished).await;
        match finished.map_err(|_| late(DOING)).flatten() {
            Ok(stored) => Ok(stored),
            Err(error) => {
                self.discard().await;
                Err(error)
            }
        }
    }

    /// Takes back what was stored of an object that is not finished.
    pub async fn discard(mut self) {
        // Chunks that are still on their way would come after the removal.
        while !self.unacknowledged.is_empty() {
            let stored = self.await_acknowledgement().await;
            if stored.is_err_and(|error| !matches!(error, Error::Full { .. })) {
                break;
            }
        }
        let chunks = object_chunks(&self.id);
        if let Err(error) = self.objects.remove_chunks(&chunks).await {
            tracing::debug!(
                error = %chain(&error),
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
        let digest = self.digest.clone().finish();
        let object = ObjectRef {
            sha256: hex(digest.as_ref()),
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

    /// Sends a chunk without waiting for it: the server stores messages of one connection in the order of their sending.
    async fn send(&mut self, chunk: Bytes) -> Result<(), Error> {
        if self.unacknowledged.len() >= MOST_UNACKNOWLEDGED {
            self.await_acknowledgement().await?;
        }
        // The whole size is not known yet: room for the next MiB is asked for each MiB.
        if self.chunks.is_multiple_of(CHUNKS_BETWEEN_CHECKS) {
            let next = (CHUNKS_BETWEEN_CHECKS * CHUNK_BYTES) as u64;
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

/// Recognizes a refusal for want of room. The client library keeps the server's words, not its code.
fn is_about_full_store(error: &PublishError) -> bool {
    const WORDS: [&str; 4] = [
        "maximum bytes exceeded",
        "insufficient resources",
        "insufficient storage",
        "resource limits exceeded",
    ];
    let words = chain(error);
    WORDS.iter().any(|full| words.contains(full))
}

//! Object store for large bodies and packs, named by their content.

use std::{sync::Arc, time::Duration};

use async_nats::{
    HeaderMap,
    jetstream::object_store::{ObjectInfo, ObjectOptions},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE};
use bytes::Bytes;
use domain::{ObjectRef, RecordKind};
use tokio::time::timeout;

use crate::{
    connection::NatsConnection,
    error::Error,
    names::{OBJECTS, STORE, object_chunks, object_meta, sha256_hex},
    store::StoreUse,
    wire::{PublishRefusal, build_succeeding_headers},
};

/// Limit of one upload or download.
pub(crate) const TRANSFER_TIMEOUT: Duration = Duration::from_secs(60);
const TRIES: u32 = 3;
// The default of the client library's object store.
pub(crate) const CHUNK_BYTES: usize = 128 * 1024;

/// Object store. Cheap to clone.
#[derive(Clone)]
pub struct ContentStore {
    pub(crate) connection: Arc<NatsConnection>,
}

impl ContentStore {
    pub(crate) fn new(connection: Arc<NatsConnection>) -> Self {
        Self { connection }
    }

    /// Newest format of records of a kind that this process reads; a higher one belongs to a newer release.
    pub(crate) fn newest_format(&self, kind: RecordKind) -> u32 {
        match kind {
            // Control records are needed by processes of every release.
            RecordKind::Control => u32::MAX,
            RecordKind::Delivery
            | RecordKind::Trigger
            | RecordKind::Entry
            | RecordKind::Report
            | RecordKind::Row
            | RecordKind::Ledger
            | RecordKind::Branch
            | RecordKind::PullRequest
            | RecordKind::Letter
            | RecordKind::Ticket
            | RecordKind::Overview => self.connection.settings.newest_format,
        }
    }

    /// Stores bytes under their SHA-256. Bytes that are stored already only get a new date.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the server does not accept them within 60 s; [`Error::Full`] without room
    /// for them.
    pub async fn put(&self, bytes: Bytes) -> Result<ObjectRef, Error> {
        let object = ObjectRef {
            sha256: sha256_hex(&bytes),
            size_bytes: bytes.len() as u64,
        };
        let stored = async {
            if self.renew(&object).await?.is_some() {
                return Ok(());
            }
            self.connection.check_object_room(object.size_bytes).await?;
            let mut upload = self.upload();
            match upload.push(&bytes).await {
                Ok(()) => upload.finish().await.map(drop),
                Err(error) => {
                    upload.discard().await;
                    Err(error)
                }
            }
        };
        let stored = timeout(TRANSFER_TIMEOUT, Box::pin(stored));
        failpoint::around("queue.object.put", stored)
            .await
            .map_err(|_| report_late_transfer("store an object"))??;
        Ok(object)
    }

    /// Used part of the room for objects, in percent; 0 without a limit.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn used_percent(&self) -> Result<u64, Error> {
        let info = self.connection.stream_info(OBJECTS).await?;
        let limit = u64::try_from(info.config.max_bytes).unwrap_or_default();
        let used = StoreUse {
            used: info.state.bytes,
            limit,
        };
        Ok(used.percent())
    }

    /// Reads an object and verifies its content against its name.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the transfer takes more than 60 s; [`Error::Corrupt`] when the object is
    /// missing or differs from its name.
    pub async fn get(&self, object: &ObjectRef) -> Result<Bytes, Error> {
        let mut tries = 1;
        loop {
            let read = timeout(TRANSFER_TIMEOUT, Box::pin(self.read(object)));
            let read = failpoint::around("queue.object.get", read).await;
            match read.map_err(|_| report_late_transfer("read an object"))? {
                // A process that stores the same content at this moment replaces the chunks between two reads
                // of ours.
                Err(Error::Corrupt { .. }) if tries < TRIES => tries += 1,
                outcome => return outcome,
            }
        }
    }

    /// Writes the description that makes chunks an object, and returns its stream sequence.
    ///
    /// The client library's own method writes it as a rollup and purges old chunks. A service with these
    /// rights could empty the whole store.
    pub(crate) async fn describe(
        &self,
        object: &ObjectRef,
        nuid: String,
        chunks: usize,
    ) -> Result<u64, Error> {
        let info = ObjectInfo {
            name: object.sha256.clone(),
            description: None,
            metadata: std::collections::HashMap::new(),
            headers: None,
            options: Some(ObjectOptions {
                link: None,
                max_chunk_size: Some(CHUNK_BYTES),
            }),
            bucket: STORE.to_owned(),
            nuid,
            size: usize::try_from(object.size_bytes).unwrap_or(usize::MAX),
            chunks,
            modified: None,
            digest: None,
            deleted: false,
        };
        let payload = serde_json::to_vec(&info).map_err(|error| Error::corrupt("an object", error))?;
        let ack = self
            .connection
            .publish(&meta_of(object), HeaderMap::new(), payload.into())
            .await?;
        Ok(ack.sequence)
    }

    /// Renews the date of an object, so that a concurrent collection keeps it. Returns the sequence of its
    /// description, or `None` when it is not stored.
    pub(crate) async fn renew(&self, object: &ObjectRef) -> Result<Option<u64>, Error> {
        let subject = meta_of(object);
        for _ in 0..TRIES {
            let Some(stored) = self.connection.last(OBJECTS, &subject).await? else {
                return Ok(None);
            };
            let info: Option<ObjectInfo> = serde_json::from_slice(&stored.payload).ok();
            if info.is_none_or(|info| info.deleted || info.size as u64 != object.size_bytes) {
                return Ok(None);
            }
            let headers = build_succeeding_headers(stored.sequence);
            match self.connection.publish(&subject, headers, stored.payload).await {
                Ok(ack) => return Ok(Some(ack.sequence)),
                // Another process renewed or removed it at this moment.
                Err(PublishRefusal::WrongLast) => {}
                Err(refusal) => return Err(refusal.into()),
            }
        }
        // The caller stores the object in full, which succeeds in any case.
        Ok(None)
    }

    async fn read(&self, object: &ObjectRef) -> Result<Bytes, Error> {
        let missing = || Error::corrupt(format!("object {}", object.sha256), "it is not stored");
        // The messages of the stream are read without a consumer: a user with the right to create consumers
        // can have one deliver to any subject.
        let info = self.info(object).await?.ok_or_else(missing)?;
        let chunks = self
            .connection
            .range(OBJECTS, &object_chunks(&info.nuid), 0)
            .await?;
        let bytes: Vec<u8> = chunks
            .messages
            .iter()
            .flat_map(|chunk| chunk.payload.iter().copied())
            .collect();
        if sha256_hex(&bytes) != object.sha256 {
            return Err(Error::corrupt(
                format!("object {}", object.sha256),
                "its content differs from its name",
            ));
        }
        Ok(bytes.into())
    }

    /// Description of an object, if it is stored completely.
    async fn info(&self, object: &ObjectRef) -> Result<Option<ObjectInfo>, Error> {
        let last = self.connection.last(OBJECTS, &meta_of(object)).await?;
        let info: Option<ObjectInfo> = last.and_then(|stored| serde_json::from_slice(&stored.payload).ok());
        Ok(info.filter(|info| !info.deleted && info.size as u64 == object.size_bytes))
    }
}

/// Subject of an object's description.
pub(crate) fn meta_of(object: &ObjectRef) -> String {
    object_meta(&BASE64_URL_SAFE.encode(&object.sha256))
}

pub(crate) fn report_late_transfer(doing: &str) -> Error {
    Error::unavailable(doing, format!("no end within {} s", TRANSFER_TIMEOUT.as_secs()))
}

//! The object store: content-named bodies and packs.

use std::{sync::Arc, time::Duration};

use async_nats::jetstream::object_store::{ObjectInfo, ObjectStore};
use base64::{Engine as _, prelude::BASE64_URL_SAFE};
use bytes::Bytes;
use domain::{ObjectRef, RecordKind};
use tokio::time::timeout;

use crate::{
    connection::Connection,
    digest::sha256_hex,
    error::Error,
    names::{OBJECTS, STORE, object_chunks, object_meta},
    wire::{Refusal, replacing},
};

const TRANSFER_TIMEOUT: Duration = Duration::from_secs(60);
const TRIES: u32 = 3;

/// Bodies by content. Cheap to clone.
#[derive(Clone)]
pub struct Objects {
    pub(crate) connection: Arc<Connection>,
}

impl Objects {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self { connection }
    }

    /// The newest format of such records that this process takes for its own release's.
    pub(crate) fn newest_format(&self, kind: RecordKind) -> u32 {
        match kind {
            // Without these no process of any release could work.
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

    /// Stores bytes under their SHA-256; storing them again only renews their dates.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the server does not take them within 60 s.
    pub async fn put(&self, bytes: Bytes) -> Result<ObjectRef, Error> {
        let object = ObjectRef {
            sha256: sha256_hex(&bytes),
            size_bytes: bytes.len() as u64,
        };
        let store = self.store().await?;
        let stored = async {
            if self.has_renewed(&object).await? {
                return Ok(());
            }
            let put = store.put(object.sha256.as_str(), &mut bytes.as_ref()).await;
            put.map(drop)
                .map_err(|error| Error::unavailable("store an object", error))
        };
        let stored = timeout(TRANSFER_TIMEOUT, Box::pin(stored));
        failpoint::around("queue.object.put", stored)
            .await
            .map_err(|_| late("store an object"))??;
        Ok(object)
    }

    /// Reads bytes back and checks them against their name.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the server does not give them within 60 s, [`Error::Corrupt`] when they are not
    /// there or differ from their name.
    pub async fn get(&self, object: &ObjectRef) -> Result<Bytes, Error> {
        let mut tries = 1;
        loop {
            let read = timeout(TRANSFER_TIMEOUT, Box::pin(self.read(object)));
            let read = failpoint::around("queue.object.get", read).await;
            match read.map_err(|_| late("read an object"))? {
                // Somebody who stores the same content replaces its chunks while we read them.
                Err(Error::Corrupt { .. }) if tries < TRIES => tries += 1,
                outcome => return outcome,
            }
        }
    }

    /// Says anew that the object is wanted, so that nobody who thinks it is not removes it; false when it is not stored.
    async fn has_renewed(&self, object: &ObjectRef) -> Result<bool, Error> {
        let subject = meta_of(object);
        for _ in 0..TRIES {
            let Some(stored) = self.connection.last(OBJECTS, &subject).await? else {
                return Ok(false);
            };
            let info: Option<ObjectInfo> = serde_json::from_slice(&stored.payload).ok();
            if info.is_none_or(|info| info.deleted || info.size as u64 != object.size_bytes) {
                return Ok(false);
            }
            let headers = replacing(stored.sequence);
            match self.connection.publish(&subject, headers, stored.payload).await {
                Ok(_) => return Ok(true),
                // It was dated or removed at this very moment.
                Err(Refusal::WrongLast) => {}
                Err(refusal) => return Err(refusal.into()),
            }
        }
        // Written once more in full, it is there whatever the others do.
        Ok(false)
    }

    async fn read(&self, object: &ObjectRef) -> Result<Bytes, Error> {
        let missing = || Error::corrupt(format!("object {}", object.sha256), "it is not stored");
        // The messages of the stream are read without a consumer: a user that may create consumers can have one deliver
        // to any subject.
        let info = self.info(object).await?.ok_or_else(missing)?;
        let chunks = self
            .connection
            .range(OBJECTS, &object_chunks(&info.nuid), 0)
            .await?;
        let bytes: Vec<u8> = chunks
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

    /// The description of an object that is stored whole.
    async fn info(&self, object: &ObjectRef) -> Result<Option<ObjectInfo>, Error> {
        let last = self.connection.last(OBJECTS, &meta_of(object)).await?;
        let info: Option<ObjectInfo> = last.and_then(|stored| serde_json::from_slice(&stored.payload).ok());
        Ok(info.filter(|info| !info.deleted && info.size as u64 == object.size_bytes))
    }

    async fn store(&self) -> Result<&ObjectStore, Error> {
        let open = || async {
            let opened = self.connection.context.get_object_store(STORE).await;
            opened.map_err(|error| Error::unavailable("open the object store", error))
        };
        self.connection.object_store.get_or_try_init(open).await
    }
}

/// The subject of an object's description.
fn meta_of(object: &ObjectRef) -> String {
    object_meta(&BASE64_URL_SAFE.encode(&object.sha256))
}

fn late(doing: &str) -> Error {
    Error::unavailable(doing, format!("no end within {} s", TRANSFER_TIMEOUT.as_secs()))
}

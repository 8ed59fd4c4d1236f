//! The object store: content-named bodies and packs.

use std::{sync::Arc, time::Duration};

use async_nats::jetstream::object_store::{InfoErrorKind, ObjectInfo, ObjectStore};
use base64::{Engine as _, prelude::BASE64_URL_SAFE};
use bytes::Bytes;
use domain::{ObjectRef, RecordKind};
use tokio::{io::AsyncReadExt as _, time::timeout};

use crate::{
    connection::Connection,
    digest::sha256_hex,
    error::Error,
    names::{OBJECTS, STORE, object_meta},
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
            | RecordKind::Ticket => self.connection.settings.newest_format,
        }
    }

    /// Stores bytes under their SHA-256; storing them again only dates them anew.
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
            if self.dated_anew(&object).await? {
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
    async fn dated_anew(&self, object: &ObjectRef) -> Result<bool, Error> {
        let subject = object_meta(&BASE64_URL_SAFE.encode(&object.sha256));
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
        let what = || format!("object {}", object.sha256);
        let store = self.store().await?;
        if !is_stored(store, object).await? {
            return Err(Error::corrupt(what(), "it is not stored"));
        }
        let mut reader = store
            .get(object.sha256.as_str())
            .await
            .map_err(|error| Error::unavailable("read an object", error))?;
        let mut bytes = Vec::with_capacity(usize::try_from(object.size_bytes).unwrap_or_default());
        reader
            .read_to_end(&mut bytes)
            .await
            .map_err(|error| Error::corrupt(what(), error))?;
        if sha256_hex(&bytes) != object.sha256 {
            return Err(Error::corrupt(what(), "its content differs from its name"));
        }
        Ok(bytes.into())
    }

    async fn store(&self) -> Result<&ObjectStore, Error> {
        let open = || async {
            let opened = self.connection.context.get_object_store(STORE).await;
            opened.map_err(|error| Error::unavailable("open the object store", error))
        };
        self.connection.object_store.get_or_try_init(open).await
    }
}

async fn is_stored(store: &ObjectStore, object: &ObjectRef) -> Result<bool, Error> {
    match store.info(&object.sha256).await {
        Ok(info) => Ok(!info.deleted && info.size as u64 == object.size_bytes),
        Err(error) if error.kind() == InfoErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::unavailable("look for an object", error)),
    }
}

fn late(doing: &str) -> Error {
    Error::Unavailable(format!("{doing}: no end within {} s", TRANSFER_TIMEOUT.as_secs()))
}

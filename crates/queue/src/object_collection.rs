//! Collection of objects that no record refers to.
//!
//! An object is in use while a record contains its SHA-256. Of the snapshots in a journal only those count
//! that the run still needs: the last one and, until the run ends, the proven ones. Storing an object again
//! renews its date, and an object that was renewed after the search is not removed.

use std::collections::{HashMap, HashSet};

use async_nats::jetstream::object_store::ObjectInfo;
use bytes::Bytes;
use domain::{JournalEntry, ObjectRef, Timestamp};

use crate::{
    body,
    error::Error,
    journal_snapshots::JournalSnapshots,
    names::{
        DEAD, DELIVERIES, JOURNAL, KeyValueBucket, OBJECT_METAS, OBJECTS, REPORTS, TRIGGERS,
        build_delivery_filter, build_journal_filter, build_letter_filter, object_chunks,
    },
    objects::ContentStore,
    wire::{PublishRefusal, StoredMessage, build_succeeding_headers},
};

// Limit of the objects that one search holds in memory: about 15 MB of names.
const MOST: usize = 100_000;
const NAME_CHARS: usize = 64;

/// Object that no record refers to, as it was at the time of the search.
#[derive(Debug)]
pub struct UnreferencedObject {
    /// SHA-256 of its bytes.
    pub name: String,
    /// Size in bytes.
    pub size_bytes: u64,
    pub(crate) sequence: u64,
}

/// Result of a search.
#[derive(Debug, Default)]
pub struct ObjectSearch {
    /// Objects that may be removed.
    pub garbage: Vec<UnreferencedObject>,
    /// Sequence at which the next search continues; absent after the last one.
    pub next: Option<u64>,
}

impl ContentStore {
    /// Searches up to 100,000 objects that were last stored before `before`, an instant of the server's
    /// clock, from sequence `from` on. Returns those without a reference.
    ///
    /// The time between storing an object and storing the record that refers to it must be shorter than the
    /// age that the caller requests. Use 0 as `from` for the first search.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn unreferenced(&self, before: Timestamp, from: u64) -> Result<ObjectSearch, Error> {
        let (mut old, next) = self.stored_before(before, from).await?;
        // A revived dead letter moves its reference to the deliveries, so these are read after the letters.
        let logs = [
            (DEAD, build_letter_filter()),
            (TRIGGERS.stream, TRIGGERS.records()),
            (REPORTS.stream, REPORTS.records()),
        ];
        let logs = logs.map(|(stream, subject)| (stream.to_owned(), subject));
        let tables = KeyValueBucket::ALL.map(|bucket| (bucket.stream(), bucket.all()));
        self.keep_of_journals(&mut old).await?;
        for (stream, subject) in logs.into_iter().chain(tables) {
            self.keep_referenced(&stream, &subject, &mut old).await?;
        }
        self.keep_delivered(&mut old).await?;
        Ok(ObjectSearch {
            garbage: old.into_values().collect(),
            next,
        })
    }

    /// Removes an object unless it was stored again after the search. Returns true when this call removed it.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; a later search finds the remainder.
    pub async fn remove(&self, garbage: &UnreferencedObject) -> Result<bool, Error> {
        let Some(stored) = self.connection.at(OBJECTS, garbage.sequence).await? else {
            return Ok(false);
        };
        let info = read_description(&stored)?;
        let chunks = object_chunks(&info.nuid);
        if info.deleted {
            // If the tombstone went first, an older description would become the last one.
            self.forget_older(&stored).await?;
            self.remove_chunks(&chunks).await?;
            self.connection.forget(OBJECTS, garbage.sequence).await?;
            return Ok(false);
        }
        let tombstone = ObjectInfo {
            deleted: true,
            size: 0,
            chunks: 0,
            ..info
        };
        let headers = build_succeeding_headers(stored.sequence);
        // The payload has the format of the NATS client library, not of our records.
        let payload = serde_json::to_vec(&tombstone)
            .map_err(|error| Error::corrupt("an object", error))?
            .into();
        match self.connection.publish(&stored.subject, headers, payload).await {
            Ok(_) => {}
            Err(PublishRefusal::WrongLast) => return Ok(false),
            // A full store accepts neither a tombstone nor another description. Then the last description
            // itself is deleted, unless it was renewed.
            Err(PublishRefusal::Failed(Error::Full { .. })) => {
                let last = self.connection.last(OBJECTS, &stored.subject).await?;
                if last.is_none_or(|last| last.sequence != stored.sequence) {
                    return Ok(false);
                }
            }
            Err(refusal) => return Err(refusal.into()),
        }
        // The chunks go last: after a crash they are torn, and `remove_torn` finds them. A description
        // without chunks would look like an object that can be read.
        self.forget_older(&stored).await?;
        self.connection.forget(OBJECTS, stored.sequence).await?;
        self.remove_chunks(&chunks).await?;
        Ok(true)
    }

    /// Removes the superseded descriptions of objects and returns their number.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; a later round finds the remainder.
    pub async fn remove_superseded(&self) -> Result<u64, Error> {
        let (mut last, mut removed, mut next) = (HashMap::new(), 0, 0);
        loop {
            let page = self.connection.page(OBJECTS, OBJECT_METAS, next).await?;
            let Some(newest) = page.last() else {
                return Ok(removed);
            };
            next = newest.sequence + 1;
            for stored in page {
                if let Some(older) = last.insert(stored.subject, stored.sequence) {
                    removed += u64::from(self.connection.forget(OBJECTS, older).await?);
                }
            }
        }
    }

    /// Removes the descriptions of an object before this one.
    async fn forget_older(&self, than: &StoredMessage) -> Result<(), Error> {
        while let Some(first) = self.connection.first(OBJECTS, &than.subject, 1).await? {
            if first.sequence >= than.sequence {
                break;
            }
            self.connection.forget(OBJECTS, first.sequence).await?;
        }
        Ok(())
    }

    /// Removes chunks one by one. A service with the right to purge the stream could empty it at once.
    pub(crate) async fn remove_chunks(&self, chunks: &str) -> Result<(), Error> {
        let mut next = 0;
        loop {
            let page = self.connection.page(OBJECTS, chunks, next).await?;
            let Some(newest) = page.last() else {
                return Ok(());
            };
            next = newest.sequence + 1;
            for chunk in page {
                self.connection.delete(OBJECTS, chunk.sequence).await?;
            }
        }
    }

    /// Removes chunks without an object, whose writer died halfway, if they were stored before an instant of
    /// the server's clock. Returns the number of torn objects.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn remove_torn(&self, before: Timestamp) -> Result<u64, Error> {
        let subjects = self.connection.subjects(OBJECTS, &object_chunks("*")).await?;
        let mut removed = 0;
        for some in subjects.chunks(MOST) {
            for subject in self.without_object(some).await? {
                let chunks = self.connection.page(OBJECTS, subject, 0).await?;
                let is_old = |chunk: &StoredMessage| chunk.at().is_some_and(|at| at < before);
                if !chunks.is_empty() && chunks.iter().all(is_old) {
                    self.remove_chunks(subject).await?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }

    /// Subjects of chunks that no description names.
    async fn without_object<'a>(&self, subjects: &'a [String]) -> Result<HashSet<&'a str>, Error> {
        let mut left: HashSet<&str> = subjects.iter().map(String::as_str).collect();
        let mut next = 0;
        loop {
            let page = self.connection.page(OBJECTS, OBJECT_METAS, next).await?;
            let Some(newest) = page.last() else {
                return Ok(left);
            };
            next = newest.sequence + 1;
            for info in page.iter().filter_map(|stored| read_description(stored).ok()) {
                left.remove(object_chunks(&info.nuid).as_str());
            }
        }
    }

    /// Objects by name, and the sequence at which the next search continues.
    async fn stored_before(
        &self,
        before: Timestamp,
        from: u64,
    ) -> Result<(HashMap<String, UnreferencedObject>, Option<u64>), Error> {
        let (mut old, mut next) = (HashMap::new(), from);
        loop {
            let page = self.connection.page(OBJECTS, OBJECT_METAS, next).await?;
            let Some(newest) = page.last() else {
                return Ok((old, None));
            };
            next = newest.sequence + 1;
            for stored in page
                .iter()
                .filter(|stored| stored.at().is_some_and(|at| at < before))
            {
                let Ok(info) = read_description(stored) else {
                    tracing::warn!(
                        subject = stored.subject,
                        "object without readable description; left alone"
                    );
                    continue;
                };
                let garbage = UnreferencedObject {
                    name: info.name.clone(),
                    size_bytes: info.size as u64,
                    sequence: stored.sequence,
                };
                old.insert(info.name, garbage);
            }
            if old.len() >= MOST {
                return Ok((old, Some(next)));
            }
        }
    }

    async fn keep_referenced(
        &self,
        stream: &str,
        subject: &str,
        old: &mut HashMap<String, UnreferencedObject>,
    ) -> Result<(), Error> {
        let mut next = 1;
        while !old.is_empty() {
            let page = self.connection.page(stream, subject, next).await?;
            let Some(newest) = page.last() else { break };
            next = newest.sequence + 1;
            for stored in page {
                self.keep_named(&stored, old).await?;
            }
        }
        Ok(())
    }

    /// Removes from the candidates the objects that journals name; of snapshots only those that runs need.
    async fn keep_of_journals(&self, old: &mut HashMap<String, UnreferencedObject>) -> Result<(), Error> {
        let (subject, mut next) = (build_journal_filter(), 1);
        let mut snapshots = JournalSnapshots::default();
        while !old.is_empty() {
            let page = self.connection.page(JOURNAL, &subject, next).await?;
            let Some(newest) = page.last() else { break };
            next = newest.sequence + 1;
            for stored in page {
                let body = match self.body_of(&stored).await? {
                    Some(body) => body,
                    None => stored.payload.clone(),
                };
                // The reference to a body counts even if the body itself cannot be read.
                if body != stored.payload {
                    keep_named_objects(&stored.payload, old);
                }
                let entry = body::decode_record::<JournalEntry>(self, &body, || stored.subject.clone());
                let is_about_snapshots = entry.is_ok_and(|entry| snapshots.take_in(&stored.subject, &entry));
                if !is_about_snapshots {
                    keep_named_objects(&body, old);
                }
            }
        }
        for name in snapshots.into_needed() {
            old.remove(&name);
        }
        Ok(())
    }

    /// Removes from the candidates the bodies of deliveries. They are read one by one from the leader,
    /// because the stream of a work queue does not allow direct reads.
    async fn keep_delivered(&self, old: &mut HashMap<String, UnreferencedObject>) -> Result<(), Error> {
        let (subject, mut next) = (build_delivery_filter(), 1);
        while !old.is_empty() {
            let Some(stored) = self.connection.first(DELIVERIES, &subject, next).await? else {
                break;
            };
            next = stored.sequence + 1;
            self.keep_named(&stored, old).await?;
        }
        Ok(())
    }

    /// Removes from the candidates the objects that a record names, and those that its body names if the body
    /// is an object itself.
    ///
    /// The body of a delivery is an outside sender's text and names no object.
    async fn keep_named(
        &self,
        stored: &StoredMessage,
        old: &mut HashMap<String, UnreferencedObject>,
    ) -> Result<(), Error> {
        keep_named_objects(&stored.payload, old);
        if let Some(body) = self.body_of(stored).await? {
            keep_named_objects(&body, old);
        }
        Ok(())
    }

    /// Body of a record if it is stored as an object; `None` if the record carries it.
    async fn body_of(&self, stored: &StoredMessage) -> Result<Option<Bytes>, Error> {
        if !body::is_reference(&stored.headers) || body::is_delivery(&stored.headers) {
            return Ok(None);
        }
        let Ok(object) = serde_json::from_slice::<ObjectRef>(&stored.payload) else {
            return Ok(None);
        };
        match self.get(&object).await {
            Ok(body) => Ok(Some(body)),
            Err(Error::Corrupt { .. }) => {
                tracing::warn!(subject = stored.subject, "record without its body");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Removes every name in the bytes from the candidates.
fn keep_named_objects(bytes: &[u8], old: &mut HashMap<String, UnreferencedObject>) {
    // Any 64 hexadecimal digits count as a name, so a reference in a format of a later release counts too.
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    let words = bytes.split(|byte| !is_digit(byte));
    for word in words.filter(|word| word.len() == NAME_CHARS) {
        if let Ok(name) = std::str::from_utf8(word) {
            old.remove(name);
        }
    }
}

fn read_description(stored: &StoredMessage) -> Result<ObjectInfo, Error> {
    serde_json::from_slice(&stored.payload).map_err(|error| Error::corrupt(&stored.subject, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_name_counts_anywhere_if_whole() {
        let name = "0a".repeat(32);
        let left = |text: String| {
            let garbage = UnreferencedObject {
                name: name.clone(),
                size_bytes: 1,
                sequence: 1,
            };
            let mut old = HashMap::from([(name.clone(), garbage)]);
            keep_named_objects(text.as_bytes(), &mut old);
            old.len()
        };
        assert_eq!(left(format!("{{\"pack\":{{\"sha256\":\"{name}\"}}}}")), 0);
        assert_eq!(left(format!("escaped \\\"{name}\\\"")), 0);
        assert_eq!(left(name.clone()), 0);
        assert_eq!(left(format!("a{name}")), 1);
        assert_eq!(left(name[1..].to_owned()), 1);
    }
}

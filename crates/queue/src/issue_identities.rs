//! Identities of Jira issues: the ticket that has an issue's records, by the issue's id and by each of its keys.

use std::sync::Arc;

use domain::{InstanceName, IssueIdentity, TicketKey, Timestamp};

use crate::{
    connection::NatsConnection,
    error::Error,
    names::KeyValueBucket,
    table::TypedTable,
    unreadable_record::{FoundValue, TableRevision},
};

// Two processes may handle two events of one issue at the same time. The loser reads the winner's record.
const TRIES: usize = 5;

/// Identities of issues. Ingest writes them, ingest and the reporter read them. Cheap to clone.
#[derive(Clone)]
pub struct IssueIdentities {
    table: TypedTable<IssueIdentity>,
}

impl IssueIdentities {
    pub(crate) fn new(connection: Arc<NatsConnection>) -> Self {
        Self {
            table: TypedTable::new(connection, KeyValueBucket::Control),
        }
    }

    /// Identity of the issue that has, or had, this key. `None` for an issue without records, and for tickets of
    /// other trackers, which never change their keys.
    ///
    /// # Errors
    /// [`Error::Unavailable`], or [`Error::Corrupt`] when the record cannot be read.
    pub async fn of_key(&self, key: &TicketKey) -> Result<Option<IssueIdentity>, Error> {
        if !matches!(key, TicketKey::Jira { .. }) {
            return Ok(None);
        }
        let name = IssueIdentity::name_of_key(key);
        Ok(self.table.get(&name).await?.map(|(identity, _)| identity))
    }

    /// Identity of the issue with this id at a site.
    ///
    /// # Errors
    /// As for [`Self::of_key`].
    pub async fn of_id(
        &self,
        instance: Option<&InstanceName>,
        id: u64,
    ) -> Result<Option<IssueIdentity>, Error> {
        let name = IssueIdentity::name_of_id(instance, id);
        Ok(self.table.get(&name).await?.map(|(identity, _)| identity))
    }

    /// Keeps the present key of an issue. A new issue gets `records` as the ticket of its records; a known one keeps
    /// its own. The key of an event before the last kept one becomes an alias alone.
    ///
    /// # Errors
    /// [`Error::Conflict`] when other processes write all the time; [`Error::Unavailable`].
    pub async fn keep(
        &self,
        id: u64,
        key: &TicketKey,
        records: &TicketKey,
        at: Timestamp,
    ) -> Result<IssueIdentity, Error> {
        for _ in 0..TRIES {
            match self.try_keep(id, key, records, at).await {
                Err(Error::Conflict) => {}
                kept => return kept,
            }
        }
        Err(Error::Conflict)
    }

    /// Keeps the key of an issue with its first record. An issue whose key has records already shares them. Returns the
    /// kept identity; a known issue keeps its own, and the result is `None`.
    ///
    /// # Errors
    /// As for [`Self::keep`].
    pub async fn keep_first(
        &self,
        id: u64,
        key: &TicketKey,
        at: Timestamp,
    ) -> Result<Option<IssueIdentity>, Error> {
        let name = IssueIdentity::name_of_id(key.instance(), id);
        let (known, revision) = self.find(&name).await?;
        if known.is_some() {
            return Ok(None);
        }
        let (of_key, last) = self.find(&IssueIdentity::name_of_key(key)).await?;
        let records = of_key.as_ref().map_or(key, |other| &other.ticket);
        let first = build_first_identity(id, key, records, at);
        let written = self.write(first, (name.as_str(), revision), Some((key, last)));
        match written.await {
            // The record of the key may be written already, while another process has kept the issue with another
            // key. Only a complete repetition makes both agree.
            Err(Error::Conflict) => self.keep(id, key, records, at).await.map(Some),
            written => written.map(Some),
        }
    }

    async fn try_keep(
        &self,
        id: u64,
        key: &TicketKey,
        records: &TicketKey,
        at: Timestamp,
    ) -> Result<IssueIdentity, Error> {
        let name = IssueIdentity::name_of_id(key.instance(), id);
        let (known, revision) = self.find(&name).await?;
        let change = match known {
            Some(known) if known.key == *key => return Ok(known),
            // An event that comes late names a key that the issue had before.
            Some(known) if known.at > at => {
                if known.keys().contains(&key) {
                    return Ok(known);
                }
                known.with_earlier(key.clone())
            }
            Some(known) => known.moved_to(key.clone(), at),
            None => build_first_identity(id, key, records, at),
        };
        self.write(change, (name.as_str(), revision), None).await
    }

    /// Writes an identity, and removes the alias that it no longer has. `known_key` is a key whose record was just
    /// read, with the revision of that record.
    async fn write(
        &self,
        (identity, forgotten): (IssueIdentity, Option<TicketKey>),
        (name, revision): (&str, Option<TableRevision>),
        known_key: Option<(&TicketKey, Option<TableRevision>)>,
    ) -> Result<IssueIdentity, Error> {
        // The record of the id comes last: while it is old, a repeated event writes the records of the keys again.
        for one in identity.keys() {
            let of_key = IssueIdentity::name_of_key(one);
            let last = match known_key {
                Some((key, last)) if key == one => last,
                Some(_) | None => self.find(&of_key).await?.1,
            };
            self.table.put(&of_key, &identity, last).await?;
        }
        self.table.put(name, &identity, revision).await?;
        if let Some(forgotten) = forgotten {
            self.table.delete(&IssueIdentity::name_of_key(&forgotten)).await?;
        }
        Ok(identity)
    }

    /// Record with its revision. A corrupt record counts as none and is replaced; one of a newer release is an error.
    async fn find(&self, name: &str) -> Result<(Option<IssueIdentity>, Option<TableRevision>), Error> {
        Ok(match self.table.find(name).await? {
            Some(FoundValue::Value(identity, revision)) => (Some(identity), Some(revision)),
            Some(FoundValue::Unreadable(unreadable)) => (None, Some(unreadable.unless_newer()?.revision())),
            None => (None, None),
        })
    }
}

/// Builds the identity of an issue without one, and the alias that it no longer has.
fn build_first_identity(
    id: u64,
    key: &TicketKey,
    records: &TicketKey,
    at: Timestamp,
) -> (IssueIdentity, Option<TicketKey>) {
    let new = IssueIdentity::new(id, records.clone(), records.clone(), at);
    if key == records {
        (new, None)
    } else {
        new.moved_to(key.clone(), at)
    }
}

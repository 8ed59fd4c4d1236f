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

    async fn try_keep(
        &self,
        id: u64,
        key: &TicketKey,
        records: &TicketKey,
        at: Timestamp,
    ) -> Result<IssueIdentity, Error> {
        let name = IssueIdentity::name_of_id(key.instance(), id);
        let (known, revision) = self.find(&name).await?;
        let (identity, forgotten) = match known {
            Some(known) if known.key == *key => return Ok(known),
            // An event that comes late names a key that the issue had before.
            Some(known) if known.at > at => {
                if known.keys().contains(&key) {
                    return Ok(known);
                }
                known.with_earlier(key.clone())
            }
            Some(known) => known.moved_to(key.clone(), at),
            None => {
                let new = IssueIdentity::new(id, records.clone(), records.clone(), at);
                if key == records {
                    (new, None)
                } else {
                    new.moved_to(key.clone(), at)
                }
            }
        };
        // The record of the id comes last: while it is old, a repeated event writes the records of the keys again.
        for one in identity.keys() {
            let of_key = IssueIdentity::name_of_key(one);
            let (_, last) = self.find(&of_key).await?;
            self.table.put(&of_key, &identity, last).await?;
        }
        self.table.put(&name, &identity, revision).await?;
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

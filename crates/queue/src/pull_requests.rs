//! Index of Journeyman's pull requests: the ticket of each, and its state.

use std::sync::Arc;

use domain::{PullRequestRecord, PullRequestRef, RepositoryName};

use crate::{
    connection::NatsConnection,
    error::Error,
    names::{self, KeyValueBucket, RecordKey},
    table::TypedTable,
    unreadable_record::{FoundValue, TableRevision},
};

/// Records of Journeyman's pull requests. The reporter writes them, ingest reads them. Cheap to clone.
#[derive(Clone)]
pub struct PullRequestIndex {
    table: TypedTable<PullRequestRecord>,
}

impl PullRequestIndex {
    pub(crate) fn new(connection: Arc<NatsConnection>) -> Self {
        Self {
            table: TypedTable::new(connection, KeyValueBucket::PullRequests),
        }
    }

    /// Record of a pull request, read from the leader.
    ///
    /// # Errors
    /// [`Error::Unavailable`], or [`Error::Corrupt`] when the record cannot be read.
    pub async fn get(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Option<PullRequestRecord>, Error> {
        let filter = names::build_pull_request_filter(repository, number);
        Ok(self.table.get_last(&filter).await?.map(|(record, _)| record))
    }

    /// Writes a record and replaces the existing one, of any ticket. An equal record is left alone.
    ///
    /// # Errors
    /// [`Error::Conflict`] when another process writes at the same time; [`Error::Unavailable`].
    pub async fn keep(&self, record: &PullRequestRecord) -> Result<(), Error> {
        let PullRequestRef {
            repository, number, ..
        } = &record.pull_request;
        let filter = names::build_pull_request_filter(repository, *number);
        let last = match self.table.find_last(&filter).await? {
            Some(FoundValue::Value(known, _)) if known == *record => return Ok(()),
            Some(FoundValue::Value(_, revision)) => Some(revision),
            Some(FoundValue::Unreadable(unreadable)) => Some(unreadable.unless_newer()?.revision()),
            None => None,
        };
        let key = RecordKey::pull_request(repository, *number, &record.ticket);
        let subject = KeyValueBucket::PullRequests.subject(&key);
        self.table.put_last(&subject, &filter, record, last).await?;
        Ok(())
    }

    /// Records that were written after a revision, oldest first, and the revision for the next call.
    /// Unreadable records are omitted and logged.
    ///
    /// The cost depends on the number of changes, not on the size of the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn changes_after(
        &self,
        after: TableRevision,
    ) -> Result<(Vec<PullRequestRecord>, TableRevision), Error> {
        self.table.changes_after(after).await
    }
}

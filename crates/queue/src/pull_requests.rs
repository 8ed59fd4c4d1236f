//! Index of Journeyman's pull requests: the ticket of each, and its state.

use std::sync::Arc;

use domain::{PullRequestRecord, PullRequestRef, RepositoryName};

use crate::{
    connection::Connection,
    error::Error,
    names::{self, Bucket, Key},
    table::Table,
    unreadable::{Found, Revision},
};

/// Records of Journeyman's pull requests. The reporter writes them, ingest reads them. Cheap to clone.
#[derive(Clone)]
pub struct PullRequests {
    table: Table<PullRequestRecord>,
}

impl PullRequests {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self {
            table: Table::new(connection, Bucket::PullRequests),
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
        match self
            .table
            .find_last(&names::pull_request(repository, number))
            .await?
        {
            Some(Found::Value(record, _)) => Ok(Some(record)),
            Some(Found::Unreadable(unreadable)) => Err(unreadable.into()),
            None => Ok(None),
        }
    }

    /// Writes a record and replaces the existing one, of any ticket. An equal record is left alone.
    ///
    /// # Errors
    /// [`Error::Conflict`] when another process writes at the same time; [`Error::Unavailable`].
    pub async fn keep(&self, record: &PullRequestRecord) -> Result<(), Error> {
        let PullRequestRef {
            repository, number, ..
        } = &record.pull_request;
        let filter = names::pull_request(repository, *number);
        let last = match self.table.find_last(&filter).await? {
            Some(Found::Value(known, _)) if known == *record => return Ok(()),
            Some(Found::Value(_, revision)) => Some(revision),
            Some(Found::Unreadable(unreadable)) => Some(unreadable.unless_newer()?.revision()),
            None => None,
        };
        let key = Key::pull_request(repository, *number, &record.ticket);
        let subject = Bucket::PullRequests.subject(&key);
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
    pub async fn changes_after(&self, after: Revision) -> Result<(Vec<PullRequestRecord>, Revision), Error> {
        self.table.changes_after(after).await
    }
}

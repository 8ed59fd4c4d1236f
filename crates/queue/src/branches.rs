//! Which ticket a head branch belongs to.

use std::sync::Arc;

use domain::{BranchRecord, RepositoryName, TicketKey};

use crate::{
    connection::Connection,
    error::Error,
    names::{self, Bucket, Key},
    table::Table,
    unreadable::{Found, Revision},
};

/// The records of head branches. A branch has one record, whatever its ticket; it is found by its repository and name,
/// and with all others of its ticket. Cheap to clone.
#[derive(Clone)]
pub struct Branches {
    table: Table<BranchRecord>,
}

impl Branches {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self {
            table: Table::new(connection, Bucket::Branches),
        }
    }

    /// The record of a branch, read from the leader.
    ///
    /// # Errors
    /// [`Error::Unavailable`], or [`Error::Corrupt`] when the record cannot be read.
    pub async fn get(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Option<(BranchRecord, Revision)>, Error> {
        match self.table.find_last(&names::branch(repository, branch)).await? {
            Some(Found::Value(record, revision)) => Ok(Some((record, revision))),
            Some(Found::Unreadable(unreadable)) => Err(unreadable.into()),
            None => Ok(None),
        }
    }

    /// Compare-and-set: `None` creates. Of two tickets that record one branch at once, one is refused.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the revision is not the branch's last; [`Error::Unavailable`].
    pub async fn put(&self, record: &BranchRecord, last: Option<Revision>) -> Result<Revision, Error> {
        let key = Key::branch(&record.repository, &record.branch, &record.ticket);
        let subject = Bucket::Branches.subject(&key);
        let filter = names::branch(&record.repository, &record.branch);
        self.table.put_last(&subject, &filter, record, last).await
    }

    /// Removes a record that is still the one of this revision.
    ///
    /// # Errors
    /// [`Error::Conflict`] when it is not; [`Error::Unavailable`].
    pub async fn withdraw(&self, record: &BranchRecord, last: Revision) -> Result<(), Error> {
        match self.get(&record.repository, &record.branch).await? {
            Some((_, revision)) if revision == last => {
                let key = Key::branch(&record.repository, &record.branch, &record.ticket);
                self.table.delete(key).await
            }
            Some(_) | None => Err(Error::Conflict),
        }
    }

    /// Every branch of a ticket. A record that cannot be read is left out and logged.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn of_ticket(&self, ticket: &TicketKey) -> Result<Vec<BranchRecord>, Error> {
        let listed = self.table.list_under(&names::branches_of(ticket)).await?;
        Ok(listed.into_iter().map(|(_, record)| record).collect())
    }

    /// Every branch. A record that cannot be read is left out and logged.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn list(&self) -> Result<Vec<BranchRecord>, Error> {
        let listed = self.table.list().await?;
        Ok(listed.into_iter().map(|(_, record)| record).collect())
    }
}

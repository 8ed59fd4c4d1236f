//! Index of head branches and their tickets.

use std::sync::Arc;

use domain::{BranchRecord, RepositoryName, TicketKey};

use crate::{
    connection::NatsConnection,
    error::Error,
    names::{self, KeyValueBucket, RecordKey},
    table::TypedTable,
    unreadable_record::TableRevision,
};

/// Records of head branches: one per branch, of any ticket. Found by repository and name, or all of a ticket.
/// Cheap to clone.
#[derive(Clone)]
pub struct BranchIndex {
    table: TypedTable<BranchRecord>,
}

impl BranchIndex {
    pub(crate) fn new(connection: Arc<NatsConnection>) -> Self {
        Self {
            table: TypedTable::new(connection, KeyValueBucket::Branches),
        }
    }

    /// Record of a branch, read from the leader.
    ///
    /// # Errors
    /// [`Error::Unavailable`], or [`Error::Corrupt`] when the record cannot be read.
    pub async fn get(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Option<(BranchRecord, TableRevision)>, Error> {
        let filter = names::build_branch_filter(repository, branch);
        self.table.get_last(&filter).await
    }

    /// Compare-and-set: `None` creates. If two tickets record one branch at the same time, one of them is
    /// refused.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the revision is not the branch's last; [`Error::Unavailable`].
    pub async fn put(
        &self,
        record: &BranchRecord,
        last: Option<TableRevision>,
    ) -> Result<TableRevision, Error> {
        let key = RecordKey::branch(&record.repository, &record.branch, &record.ticket);
        let subject = KeyValueBucket::Branches.subject(&key);
        let filter = names::build_branch_filter(&record.repository, &record.branch);
        self.table.put_last(&subject, &filter, record, last).await
    }

    /// Deletes a record if it still has this revision.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the record has another revision or is missing; [`Error::Unavailable`].
    pub async fn withdraw(&self, record: &BranchRecord, last: TableRevision) -> Result<(), Error> {
        let key = RecordKey::branch(&record.repository, &record.branch, &record.ticket);
        let subject = KeyValueBucket::Branches.subject(&key);
        let filter = names::build_branch_filter(&record.repository, &record.branch);
        // One request: between a separate read and the deletion, another run could record the branch and lose
        // its record. The tombstone stays: a purge compares no revision, and the stream has no TTL for messages.
        self.table.delete_last(&subject, &filter, last).await
    }

    /// Branches of a ticket. Unreadable records are omitted and logged.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn of_ticket(&self, ticket: &TicketKey) -> Result<Vec<BranchRecord>, Error> {
        let listed = self.table.list_under(&names::branches_of(ticket)).await?;
        Ok(listed.into_iter().map(|(_, record)| record).collect())
    }

    /// All branches. Unreadable records are omitted and logged.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn list(&self) -> Result<Vec<BranchRecord>, Error> {
        let listed = self.table.list().await?;
        Ok(listed.into_iter().map(|(_, record)| record).collect())
    }
}

//! Keys of Jira issues. An issue that moves to another project gets a new key; the records of its ticket stay under the
//! key that they began with.

use std::sync::Arc;

use domain::{InstanceName, IssueIdentity, TicketKey, TicketRow};
use queue::{IssueIdentities, KeyValueBucket, Queue};

use crate::{
    facts::tracker_reader::{ReadError, TrackerReader},
    router::outcome::EventFailure,
    webhook::payload::jira::SeenIssue,
};

/// Reader and keeper of the keys of issues.
#[derive(Clone)]
pub(crate) struct IssueKeys {
    queue: Queue,
    identities: IssueIdentities,
    outside: Arc<TrackerReader>,
}

impl IssueKeys {
    pub(crate) fn new(queue: Queue, outside: Arc<TrackerReader>) -> Self {
        Self {
            identities: queue.issue_identities(),
            queue,
            outside,
        }
    }

    /// Identity of the issue that has, or had, this key. Later reads of the issue by any of its keys find it.
    pub(crate) async fn identity(&self, key: &TicketKey) -> Result<Option<IssueIdentity>, queue::Error> {
        let identity = self.identities.of_key(key).await?;
        if let Some(identity) = &identity {
            self.remember(identity, key);
        }
        Ok(identity)
    }

    /// Ticket that has the records of the issue with this key.
    pub(crate) async fn records_of(&self, key: &TicketKey) -> Result<TicketKey, queue::Error> {
        let identity = self.identity(key).await?;
        Ok(identity.map_or_else(|| key.clone(), |identity| identity.ticket))
    }

    /// Present key of the issue with this key: the rules of its project decide about new work.
    pub(crate) async fn present_key(&self, key: &TicketKey) -> Result<TicketKey, queue::Error> {
        let identity = self.identity(key).await?;
        Ok(identity.map_or_else(|| key.clone(), |identity| identity.key))
    }

    /// Present key of the issue with this id: that of Jira, or the last known one where the reader account does not see the
    /// issue; `None` for an unknown issue.
    pub(crate) async fn key_of_id(
        &self,
        instance: Option<&InstanceName>,
        id: u64,
    ) -> Result<Option<TicketKey>, EventFailure> {
        match self.outside.key_of_issue(instance, id).await {
            Ok(key) => Ok(Some(key)),
            // A Data Center refuses the read of an issue that exists, where the Cloud does not find it.
            Err(ReadError::NotFound(_) | ReadError::Refused(_)) => {
                let known = self.identities.of_id(instance, id).await?;
                Ok(known.map(|identity| identity.key))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Notes the key of an issue from an event, before the event is decided: a move makes the new key an alias.
    ///
    /// Nothing is kept of an issue without records, because a site reports the events of all its projects.
    pub(crate) async fn note(&self, seen: &SeenIssue, has_rules: bool) -> Result<(), EventFailure> {
        let read_id = self.identities.of_id(seen.key.instance(), seen.id);
        // A move decides by its former key first. Every other event of a new issue needs both reads.
        let read_key = async {
            if has_rules && seen.moved_from.is_none() {
                self.identities.of_key(&seen.key).await
            } else {
                Ok(None)
            }
        };
        let (known, of_key) = tokio::try_join!(read_id, read_key)?;
        if let Some(known) = known {
            return self.note_known(seen, &known).await;
        }
        if let Some(before) = &seen.moved_from {
            let records = self.records_of(before).await?;
            if self.has_records(&records).await? {
                tracing::info!(ticket = %records, to = %seen.key, "the issue has another key now");
                return self.keep(seen, &records).await;
            }
        }
        if !has_rules {
            return Ok(());
        }
        let other = match &seen.moved_from {
            Some(_) => self.identities.of_key(&seen.key).await?,
            None => of_key,
        };
        match other {
            // Another issue had the key: it was deleted, or moved away and the key was given again.
            Some(other) => self.take_key(seen, &other).await,
            None if self.has_records(&seen.key).await? => self.keep(seen, &seen.key).await,
            None => Ok(()),
        }
    }

    async fn note_known(&self, seen: &SeenIssue, known: &IssueIdentity) -> Result<(), EventFailure> {
        if known.keys().contains(&&seen.key) && (known.key == seen.key || known.at > seen.at) {
            return Ok(());
        }
        let is_right = if known.at > seen.at {
            // A move that was overtaken by a later one. Its key may belong to another issue by now.
            seen.moved_from.is_some() && self.identities.of_key(&seen.key).await?.is_none()
        } else {
            self.is_present_key(seen).await?
        };
        if is_right {
            tracing::info!(ticket = %known.ticket, from = %known.key, to = %seen.key, "the issue has another key");
            self.keep(seen, &known.ticket).await?;
        }
        Ok(())
    }

    /// Notes the key of an issue whose first record was just written.
    pub(crate) async fn note_new(&self, seen: &SeenIssue) -> Result<(), EventFailure> {
        let kept = self.identities.keep_first(seen.id, &seen.key, seen.at).await?;
        if let Some(kept) = &kept {
            self.remember(kept, &seen.key);
        }
        Ok(())
    }

    /// Gives a key to another issue.
    async fn take_key(&self, seen: &SeenIssue, other: &IssueIdentity) -> Result<(), EventFailure> {
        // A webhook may be older than a move of the issue; Jira decides.
        if !self.is_present_key(seen).await? {
            return Ok(());
        }
        if other.ticket == seen.key && other.is_moved() {
            return Err(EventFailure::Never(format!(
                "the records of {} belong to the issue that is {} now; delete them with journeyman purge {}, then repeat the event",
                seen.key, other.key, other.ticket
            )));
        }
        tracing::info!(ticket = %seen.key, id = seen.id, before = other.id, "the key belongs to another issue now");
        self.keep(seen, &seen.key).await
    }

    /// True when Jira confirms the key, or its changelog has the move.
    async fn is_present_key(&self, seen: &SeenIssue) -> Result<bool, EventFailure> {
        if seen.moved_from.is_some() {
            return Ok(true);
        }
        match self.outside.key_of_issue(seen.key.instance(), seen.id).await {
            Ok(key) => Ok(key == seen.key),
            Err(ReadError::NotFound(_) | ReadError::Unreadable(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn keep(&self, seen: &SeenIssue, records: &TicketKey) -> Result<(), EventFailure> {
        let kept = self.identities.keep(seen.id, &seen.key, records, seen.at).await?;
        self.remember(&kept, &seen.key);
        Ok(())
    }

    async fn has_records(&self, ticket: &TicketKey) -> Result<bool, EventFailure> {
        let triggers = self.queue.triggers();
        let rows = self.queue.table::<TicketRow>(KeyValueBucket::Tickets);
        let key = ticket.to_string();
        // A row outlives the triggers.
        let (last, row) = tokio::try_join!(triggers.last_sequence(ticket), rows.find(&key))?;
        Ok(last.is_some() || row.is_some())
    }

    /// Addresses the issue by its id. Its other keys may belong to other issues by now.
    fn remember(&self, identity: &IssueIdentity, named: &TicketKey) {
        for key in [&identity.ticket, named] {
            self.outside.remember_move(key, identity.id, &identity.key);
        }
    }
}

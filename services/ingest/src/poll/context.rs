//! Context of polls: the router, the memory of findings, and the records that outlive a round.

use std::sync::Arc;

use bytes::Bytes;
use domain::{RecordKind, StoredRecord, TicketKey, Timestamp, cause::format_error_chain};
use queue::{DeadLetter, FoundValue, KeyValueBucket, Queue, TableRevision};
use serde::{Deserialize, Serialize};

use crate::{
    facts::tracker_reader::{ReadError, TrackerReader},
    poll::{
        memory::PollMemory,
        round::{FailedFinding, PollRound},
    },
    router::{EventRouter, outcome::EventFailure},
};

/// Overlap of a poll with the previous one, in milliseconds. Attempts appear late in GitHub's delivery log.
pub const OVERLAP_MS: i64 = 10 * 60 * 1000;
const FIRST_LOOK_MS: i64 = 60 * 60 * 1000;

/// Stored poll mark: the time up to which something outside was polled.
#[derive(Serialize, Deserialize)]
struct PollMark {
    to: Timestamp,
}

impl StoredRecord for PollMark {
    const KIND: RecordKind = RecordKind::Control;
}

/// One poll of something outside.
pub(crate) struct PollWindow {
    key: String,
    /// Start of the polled time: some minutes before the end of the previous poll.
    pub(crate) since: Timestamp,
    pub(crate) now: Timestamp,
    revision: Option<TableRevision>,
}

/// State that all polls of a process share.
pub(crate) struct PollContext {
    pub(crate) router: EventRouter,
    pub(crate) records: PollRecords,
    pub(crate) memory: PollMemory,
}

impl PollContext {
    pub(crate) fn new(router: EventRouter) -> Self {
        Self {
            records: PollRecords {
                queue: router.queue.clone(),
                outside: Arc::clone(&router.outside),
                is_dry_run: router.seen.is_some(),
            },
            router,
            memory: PollMemory::default(),
        }
    }

    /// Dead-letters findings that failed too often or for good. Returns the time of the oldest finding that the next
    /// round has to list again.
    pub(crate) async fn settle_round(&mut self, round: PollRound) -> Result<Option<Timestamp>, EventFailure> {
        self.records.settle_round(round, &mut self.memory).await
    }
}

/// Poll marks, and the dead letters of findings that were given up. A dry run stores neither.
pub(crate) struct PollRecords {
    queue: Queue,
    outside: Arc<TrackerReader>,
    is_dry_run: bool,
}

impl PollRecords {
    pub(crate) const fn is_dry_run(&self) -> bool {
        self.is_dry_run
    }

    /// Starts a poll at the previous mark, with an overlap. The first poll starts an hour ago.
    pub(crate) async fn look(&self, key: String) -> Result<PollWindow, EventFailure> {
        self.look_from(key, bootstrap::read_wall_clock().plus_ms(-FIRST_LOOK_MS))
            .await
    }

    /// Variant of [`Self::look`] with another start of the first poll.
    pub(crate) async fn look_from(&self, key: String, first: Timestamp) -> Result<PollWindow, EventFailure> {
        let now = bootstrap::read_wall_clock();
        let (since, revision) = match self
            .queue
            .table::<PollMark>(KeyValueBucket::Control)
            .find(&key)
            .await?
        {
            Some(FoundValue::Value(looked, revision)) => (looked.to.plus_ms(-OVERLAP_MS), Some(revision)),
            // A mark of a newer version must not be overwritten during a rolling upgrade. Any other unreadable mark
            // is replaced.
            Some(FoundValue::Unreadable(unreadable)) => (first, Some(unreadable.unless_newer()?.revision())),
            None => (first, None),
        };
        Ok(PollWindow {
            key,
            since,
            now,
            revision,
        })
    }

    /// Stores the mark of a poll.
    pub(crate) async fn looked(&self, look: &PollWindow, to: Timestamp) -> Result<(), EventFailure> {
        if self.is_dry_run {
            return Ok(());
        }
        let table = self.queue.table::<PollMark>(KeyValueBucket::Control);
        match table.put(&look.key, &PollMark { to }, look.revision).await {
            // Another ingest process stored its mark first. The next poll starts there.
            Ok(_) | Err(queue::Error::Conflict) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Dead-letters findings that failed too often or for good. Returns the time of the oldest finding that the next
    /// round has to list again.
    async fn settle_round(
        &self,
        round: PollRound,
        memory: &mut PollMemory,
    ) -> Result<Option<Timestamp>, EventFailure> {
        let failures = round.settle(memory);
        for FailedFinding { finding, failure, .. } in failures.retried {
            tracing::warn!(
                finding,
                error = %format_error_chain(&failure),
                "not read; it is tried again in the next round"
            );
        }
        for failed in failures.given_up {
            let FailedFinding {
                finding,
                ticket,
                failure,
                ..
            } = failed;
            let is_passing = failure.may_pass();
            if self.is_gone(ticket.as_ref(), &failure).await {
                tracing::info!(finding, "deleted before it was read; there is nothing to do");
            } else {
                self.give_up(&finding, ticket, &failure).await?;
            }
            // A finding that failed for a passing reason is read again when it is listed again.
            if is_passing {
                memory.settle(finding);
            } else {
                memory.abandon(finding);
            }
        }
        Ok(failures.waits_from)
    }

    /// True when the Jira ticket itself is deleted. A missing part of an existing ticket is an error that needs a dead
    /// letter.
    async fn is_gone(&self, ticket: Option<&TicketKey>, failure: &EventFailure) -> bool {
        let (Some(ticket @ TicketKey::Jira { .. }), EventFailure::Unknown(_)) = (ticket, failure) else {
            return false;
        };
        matches!(self.outside.issue(ticket).await, Err(ReadError::NotFound(_)))
    }

    /// Gives up a finding: logs an error and publishes a dead letter.
    pub(crate) async fn give_up(
        &self,
        finding: &str,
        ticket: Option<TicketKey>,
        failure: &EventFailure,
    ) -> Result<(), EventFailure> {
        tracing::error!(finding, error = %format_error_chain(failure), "found by poll and left out");
        // A dry run stores nothing.
        if self.is_dry_run {
            return Ok(());
        }
        let letter = DeadLetter {
            what: RecordKind::Ticket,
            id: finding.to_owned(),
            ticket,
            reason: format!("found by poll and left out: {failure}; a new change is looked at again"),
            at: bootstrap::read_wall_clock(),
        };
        Ok(self.queue.dead_letters().publish(&letter, Bytes::new()).await?)
    }
}

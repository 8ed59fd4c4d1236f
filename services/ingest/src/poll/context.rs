//! Context of polls: the router, the memory of findings, the poll marks, and the dead letters of findings.

use std::mem;

use bytes::Bytes;
use domain::{RecordKind, StoredRecord, TicketKey, Timestamp, cause::format_error_chain};
use queue::{DeadLetter, FoundValue, KeyValueBucket, TableRevision};
use serde::{Deserialize, Serialize};

use crate::{
    facts::tracker_reader::ReadError,
    poll::{
        memory::PollMemory,
        round::{FailedFinding, PollRound},
    },
    router::{EventRouter, outcome::EventFailure},
};

/// Overlap of a poll with the previous one, in milliseconds. Attempts appear late in GitHub's delivery log.
pub const OVERLAP_MS: i64 = 10 * 60 * 1000;
const FIRST_WINDOW_MS: i64 = 60 * 60 * 1000;

/// Stored poll mark: the time up to which something outside was polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PollMark {
    to: Timestamp,
    /// Time from which the details of waiting findings are unread; absent when no finding waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unread_from: Option<Timestamp>,
}

impl StoredRecord for PollMark {
    const KIND: RecordKind = RecordKind::Control;
}

impl PollMark {
    /// Mark of a poll that has read everything up to a time.
    const fn complete(to: Timestamp) -> Self {
        Self {
            to,
            unread_from: None,
        }
    }

    /// Starts of the next poll's listing and of the details that it reads.
    fn find_starts(self) -> (Timestamp, Timestamp) {
        let since = self.to.plus_ms(-OVERLAP_MS);
        (since, self.unread_from.map_or(since, |from| from.min(since)))
    }
}

/// One poll of something outside.
pub(crate) struct PollWindow {
    key: String,
    /// Start of the polled time: some minutes before the end of the previous poll.
    pub(crate) since: Timestamp,
    /// Time from which the details of a listed finding, such as comments, may be unread. A finding that waits is listed
    /// by its last change, and the details before that change are unread, too.
    pub(crate) unread_from: Timestamp,
    pub(crate) now: Timestamp,
    revision: Option<TableRevision>,
}

impl PollWindow {
    /// Mark after a poll up to `to`, with the time of the oldest finding that waits for the next poll.
    fn build_mark(&self, to: Timestamp, waits_from: Option<Timestamp>) -> PollMark {
        let end = waits_from.map_or(to, |waits| waits.min(to));
        PollMark {
            to: end,
            unread_from: (waits_from.is_some() || end < self.now).then_some(self.unread_from),
        }
    }

    /// Poll mark after a listing in the order of changes. The next poll starts at `last`, the last change of an incomplete
    /// listing, and else at this poll.
    pub(crate) fn choose_mark(&self, last: Option<Timestamp>) -> Timestamp {
        let end = last.map(|last| last.plus_ms(OVERLAP_MS));
        end.filter(|end| *end < self.now).unwrap_or(self.now)
    }
}

/// State that all polls of a process share. A dry run stores neither poll marks nor dead letters.
pub(crate) struct PollContext {
    pub(crate) router: EventRouter,
    pub(crate) memory: PollMemory,
}

impl PollContext {
    pub(crate) fn new(router: EventRouter) -> Self {
        Self {
            router,
            memory: PollMemory::default(),
        }
    }

    pub(crate) const fn is_dry_run(&self) -> bool {
        self.router.seen.is_some()
    }

    /// Starts a poll at the previous mark, with an overlap. The first poll starts an hour ago.
    pub(crate) async fn open_window(&self, key: String) -> Result<PollWindow, EventFailure> {
        self.open_window_from(key, bootstrap::read_wall_clock().plus_ms(-FIRST_WINDOW_MS))
            .await
    }

    /// Variant of [`Self::open_window`] with another start of the first poll.
    pub(crate) async fn open_window_from(
        &self,
        key: String,
        first: Timestamp,
    ) -> Result<PollWindow, EventFailure> {
        let now = bootstrap::read_wall_clock();
        let marks = self.router.queue.table::<PollMark>(KeyValueBucket::Control);
        let (starts, revision) = match marks.find(&key).await? {
            Some(FoundValue::Value(mark, revision)) => (mark.find_starts(), Some(revision)),
            // A mark of a newer version must not be overwritten during a rolling upgrade. Any other unreadable mark
            // is replaced.
            Some(FoundValue::Unreadable(unreadable)) => {
                ((first, first), Some(unreadable.unless_newer()?.revision()))
            }
            None => ((first, first), None),
        };
        let (since, unread_from) = starts;
        Ok(PollWindow {
            key,
            since,
            unread_from,
            now,
            revision,
        })
    }

    /// Stores the mark of a poll without waiting findings.
    pub(crate) async fn store_mark(&self, window: &PollWindow, to: Timestamp) -> Result<(), EventFailure> {
        self.put_mark(window, PollMark::complete(to)).await
    }

    /// Stores the mark of a poll: `to`, or the time of the oldest finding that waits for the next poll.
    pub(crate) async fn store_waiting_mark(
        &self,
        window: &PollWindow,
        to: Timestamp,
        waits_from: Option<Timestamp>,
    ) -> Result<(), EventFailure> {
        self.put_mark(window, window.build_mark(to, waits_from)).await
    }

    async fn put_mark(&self, window: &PollWindow, mark: PollMark) -> Result<(), EventFailure> {
        if self.is_dry_run() {
            return Ok(());
        }
        let marks = self.router.queue.table::<PollMark>(KeyValueBucket::Control);
        match marks.put(&window.key, &mark, window.revision).await {
            // Another ingest process stored its mark first. The next poll starts there.
            Ok(_) | Err(queue::Error::Conflict) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds a failed finding to the round.
    ///
    /// # Errors
    /// A rate limit. It applies to all findings, so the rest of the round would fail too.
    pub(crate) async fn add_failure(
        &mut self,
        round: &mut PollRound,
        failed: FailedFinding,
    ) -> Result<(), EventFailure> {
        if failed.failure.is_limit() {
            self.settle_round(mem::take(round)).await?;
            return Err(failed.failure);
        }
        round.add_failure(failed);
        Ok(())
    }

    /// Ends a round and stores its mark: `to`, or the time of the oldest finding that the next round has to list again.
    /// Returns the number of events whose webhook was missed.
    pub(crate) async fn finish_round(
        &mut self,
        round: PollRound,
        window: &PollWindow,
        to: Timestamp,
    ) -> Result<u64, EventFailure> {
        let recovered = round.recovered();
        let waits_from = self.settle_round(round).await?;
        self.store_waiting_mark(window, to, waits_from).await?;
        Ok(recovered)
    }

    /// Dead-letters findings that failed too often or for good. Returns the time of the oldest finding that the next
    /// round has to list again.
    pub(crate) async fn settle_round(&mut self, round: PollRound) -> Result<Option<Timestamp>, EventFailure> {
        let failures = round.settle(&mut self.memory);
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
            if self.is_gone(ticket.as_ref(), &failure).await {
                tracing::info!(finding, "deleted before it was read; there is nothing to do");
            } else {
                self.give_up(&finding, ticket, &failure).await?;
            }
            // A finding that failed for a passing reason is read again when it is listed again.
            if failure.may_pass() {
                self.memory.settle(finding);
            } else {
                self.memory.abandon(finding);
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
        matches!(
            self.router.outside.issue(ticket).await,
            Err(ReadError::NotFound(_))
        )
    }

    /// Gives up a finding: logs an error and publishes a dead letter.
    pub(crate) async fn give_up(
        &self,
        finding: &str,
        ticket: Option<TicketKey>,
        failure: &EventFailure,
    ) -> Result<(), EventFailure> {
        tracing::error!(finding, error = %format_error_chain(failure), "found by poll and left out");
        if self.is_dry_run() {
            return Ok(());
        }
        let letter = DeadLetter {
            what: RecordKind::Ticket,
            id: finding.to_owned(),
            ticket,
            reason: format!("found by poll and left out: {failure}; a new change is read again"),
            at: bootstrap::read_wall_clock(),
        };
        let letters = self.router.queue.dead_letters();
        Ok(letters.publish(&letter, Bytes::new()).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_waits_at_end_of_incomplete_listing() {
        let at = Timestamp::from_unix_ms;
        let now = at(100 * OVERLAP_MS);
        let window = PollWindow {
            key: "reconciled:github:acme/shop".to_owned(),
            since: Timestamp::default(),
            unread_from: Timestamp::default(),
            now,
            revision: None,
        };
        let last = at(50 * OVERLAP_MS);
        assert_eq!(window.choose_mark(Some(last)).plus_ms(-OVERLAP_MS), last);
        assert_eq!(window.choose_mark(Some(now)), now);
        assert_eq!(window.choose_mark(None), now);
    }
    #[test]
    fn waiting_finding_keeps_start_of_unread_details() {
        let at = |overlaps: i64| Timestamp::from_unix_ms(overlaps * OVERLAP_MS);
        let open = |mark: PollMark, now: i64| {
            let (since, unread_from) = mark.find_starts();
            PollWindow {
                key: "reconciled:jira:ENG".to_owned(),
                since,
                unread_from,
                now: at(now),
                revision: None,
            }
        };
        let first = open(PollMark::complete(at(2)), 100);
        assert_eq!((first.since, first.unread_from), (at(1), at(1)));
        // A ticket changed last at 50. Its comment is of 20, and its read fails.
        let second = open(first.build_mark(first.now, Some(at(50))), 101);
        assert_eq!((second.since, second.unread_from), (at(49), at(1)));
        // A listing ends at 60, and its ticket changed again.
        let third = open(second.build_mark(at(60), None), 102);
        assert_eq!((third.since, third.unread_from), (at(59), at(1)));
        // The clock of the service is ahead.
        let fourth = open(third.build_mark(third.now, Some(at(200))), 103);
        assert_eq!((fourth.since, fourth.unread_from), (at(101), at(1)));
        let last = open(fourth.build_mark(fourth.now, None), 104);
        assert_eq!((last.since, last.unread_from), (at(102), at(102)));
    }

    #[test]
    fn mark_of_earlier_release_has_one_start() {
        let mark: PollMark = serde_json::from_str(r#"{"to": 1200000}"#).unwrap();
        let (since, unread_from) = mark.find_starts();
        assert_eq!((since, unread_from), (Timestamp::from_unix_ms(600_000), since));
    }
}

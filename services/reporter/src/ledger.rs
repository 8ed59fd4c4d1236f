//! The ledger: attempts and receipts of effects, and the progress of each ticket's reports.

use domain::{
    OutboundCursor as Cursor, OutboundId, OutboundOutcome, RecordKind, ReporterFence, StoredRecord,
    TicketKey, Timestamp,
};
use queue::{
    DeadLetter, DeadLetters, FoundValue, KeyValueBucket, Queue, RecordKey, TableRevision, TypedTable,
    UnreadableRecord,
};
use serde::{Deserialize, Serialize};

use crate::{board::StatusBoard, receipt::EffectReceipts};

// Start of the id of a status comment; the ticket follows.
const STATUS_ID_START: &str = "status:";

/// Failure of a ledger operation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Another reporter with a newer fence has the ticket.
    #[error("somebody else works on the ticket")]
    Superseded,
    /// The queue failed.
    #[error(transparent)]
    Queue(queue::Error),
}

impl From<queue::Error> for Error {
    fn from(error: queue::Error) -> Self {
        match error {
            // A lost compare-and-set means that another reporter has written: this one has lost the ticket.
            queue::Error::Conflict => Self::Superseded,
            queue::Error::Unavailable { .. }
            | queue::Error::Full { .. }
            | queue::Error::Newer { .. }
            | queue::Error::Corrupt { .. }
            | queue::Error::Topology { .. } => Self::Queue(error),
        }
    }
}

/// Row of one effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EffectRecord {
    /// Start of the attempt whose outcome is unknown; absent: no attempt is outstanding.
    pub(crate) intent_at: Option<Timestamp>,
    /// Fence of the attempt.
    pub(crate) fence: ReporterFence,
    /// Number of attempts.
    pub(crate) attempts: u32,
    /// Receipts of the effect. If present, the effect is never performed again.
    pub(crate) receipt: Option<EffectReceipts>,
}

impl StoredRecord for EffectRecord {
    const KIND: RecordKind = RecordKind::Ledger;
}

/// Answer of a ledger to a performer that wants to perform an effect.
#[derive(Debug)]
pub(crate) enum EffectClaim<I = EffectIntent, R = EffectReceipts> {
    /// The effect is done; its receipts.
    Done(R),
    /// The effect may be performed.
    Open(I),
}

/// Outcome of a report as the ledger has it.
#[derive(Debug)]
pub(crate) enum KnownOutcome {
    /// The report is settled.
    Settled(OutboundOutcome),
    /// The report has no outcome.
    Open(OutcomePlace),
}

/// Place of a report's outcome, as it was read. An outcome is written once, so a second write fails the
/// compare-and-set.
#[derive(Debug)]
pub(crate) struct OutcomePlace {
    key: RecordKey,
    /// Revision of the unreadable row that the outcome replaces.
    last: Option<TableRevision>,
}

/// The right to perform one effect. Every write with it is compared with the row's last revision.
#[derive(Debug)]
pub(crate) struct EffectIntent {
    key: RecordKey,
    /// Kind of the effect, for failpoints.
    kind: String,
    fence: ReporterFence,
    last: Option<TableRevision>,
    /// Number of earlier attempts.
    pub(crate) attempts: u32,
    /// Start of an earlier attempt with an unknown outcome.
    pub(crate) open_since: Option<Timestamp>,
}

impl EffectIntent {
    fn record(&self, intent_at: Option<Timestamp>, receipt: Option<EffectReceipts>) -> EffectRecord {
        EffectRecord {
            intent_at,
            fence: self.fence,
            attempts: self.attempts,
            receipt,
        }
    }
}

/// Tables of the ledger.
#[derive(Clone)]
pub(crate) struct EffectLedger {
    effects: TypedTable<EffectRecord>,
    cursors: TypedTable<Cursor>,
    boards: TypedTable<StatusBoard>,
    outcomes: TypedTable<OutboundOutcome>,
    letters: DeadLetters,
}

/// Returns the number of consecutive crashes at the next report. It increases if the previous reporter did not return
/// the same token.
fn count_crashes(known: &Cursor, fence: ReporterFence) -> u32 {
    let (before, now) = (known.fence.stamp(), fence.stamp());
    let is_same_token = (before.epoch, before.sequence) == (now.epoch, now.sequence);
    // A higher delivery count of the same token means that the previous holder neither acked nor returned it.
    match known.crashes {
        Some(crashes) if is_same_token && before.delivered < now.delivered => crashes.saturating_add(1),
        Some(_) | None => 0,
    }
}

/// Row of the ledger, as the queue returned it.
enum LedgerRow<V> {
    Row(V, TableRevision),
    /// The row was unreadable. It is kept as a dead letter, and the next write replaces it.
    Lost(TableRevision),
    Nothing,
}

impl<V> LedgerRow<V> {
    fn row(self) -> Option<V> {
        match self {
            Self::Row(row, _) => Some(row),
            Self::Lost(_) | Self::Nothing => None,
        }
    }
}

impl EffectLedger {
    /// Opens the ledger of a queue.
    pub(crate) fn new(queue: &Queue) -> Self {
        let bucket = KeyValueBucket::Effects;
        Self {
            effects: queue.table(bucket),
            cursors: queue.table(bucket),
            boards: queue.table(bucket),
            outcomes: queue.table(bucket),
            letters: queue.dead_letters(),
        }
    }

    /// Reads a row. An unreadable row becomes a dead letter and is rebuilt, so that it does not block its ticket.
    ///
    /// # Errors
    /// A row of a newer release, which this release must not replace.
    async fn read<V>(&self, table: &TypedTable<V>, key: &RecordKey) -> Result<LedgerRow<V>, Error>
    where
        V: StoredRecord + Send + Sync,
    {
        Ok(match table.find(key).await? {
            Some(FoundValue::Value(row, revision)) => LedgerRow::Row(row, revision),
            Some(FoundValue::Unreadable(unreadable)) => {
                let unreadable = unreadable.unless_newer()?;
                self.dead_letter(key, &unreadable).await?;
                LedgerRow::Lost(unreadable.revision())
            }
            None => LedgerRow::Nothing,
        })
    }

    async fn dead_letter(&self, key: &RecordKey, unreadable: &UnreadableRecord) -> Result<(), Error> {
        tracing::error!(%key, problem = unreadable.problem(), "row of the ledger dead-lettered");
        let advice = "it was rebuilt from what is outside, and there is nothing to do";
        let (id, ticket, now) = (key.to_string(), key.ticket(), bootstrap::read_wall_clock());
        let letter = DeadLetter::about(unreadable, RecordKind::Ledger, id, ticket, advice, now);
        Ok(self.letters.publish_unreadable(&letter, unreadable).await?)
    }

    /// Claims an effect. Every later write is compared with the row as it is read here.
    ///
    /// # Errors
    /// [`Error::Superseded`] if a reporter with a newer fence has the effect.
    pub(crate) async fn claim(
        &self,
        ticket: &TicketKey,
        id: &str,
        fence: ReporterFence,
    ) -> Result<EffectClaim, Error> {
        let new = |last, attempts, open_since| EffectIntent {
            key: key_of(ticket, id),
            kind: effect_kind(id).to_owned(),
            fence,
            last,
            attempts,
            open_since,
        };
        let intent = match self.read(&self.effects, &key_of(ticket, id)).await? {
            LedgerRow::Row(
                EffectRecord {
                    receipt: Some(receipt),
                    ..
                },
                _,
            ) => return Ok(EffectClaim::Done(receipt)),
            LedgerRow::Row(record, _) if record.fence > fence => return Err(Error::Superseded),
            LedgerRow::Row(record, revision) => new(Some(revision), record.attempts, record.intent_at),
            LedgerRow::Nothing => new(None, 0, None),
            // The lost row may have recorded an attempt, so the search window for it starts now.
            LedgerRow::Lost(revision) => {
                let mut intent = new(Some(revision), 0, None);
                self.attempt(&mut intent, bootstrap::read_wall_clock()).await?;
                intent
            }
        };
        Ok(EffectClaim::Open(intent))
    }

    /// Records an attempt. Call it right before the outbound write, never after it.
    pub(crate) async fn attempt(&self, intent: &mut EffectIntent, now: Timestamp) -> Result<(), Error> {
        // Counted before the write, so that a crash in the write counts, too.
        intent.attempts += 1;
        intent.open_since = Some(now);
        let record = intent.record(Some(now), None);
        let kind = intent.kind.clone();
        failpoint::around_kind("reporter.ledger.attempt", &kind, self.write(intent, record)).await
    }

    /// Records that the attempt had no effect, so that the next attempt need not search for its result.
    pub(crate) async fn withdraw(&self, mut intent: EffectIntent) -> Result<(), Error> {
        let record = intent.record(None, None);
        let kind = intent.kind.clone();
        let written = self.write(&mut intent, record);
        failpoint::around_kind("reporter.ledger.withdraw", &kind, written).await
    }

    /// Records the receipt of an effect.
    pub(crate) async fn settle(
        &self,
        mut intent: EffectIntent,
        receipt: EffectReceipts,
    ) -> Result<(), Error> {
        let record = intent.record(intent.open_since, Some(receipt));
        let kind = intent.kind.clone();
        let written = self.write(&mut intent, record);
        failpoint::around_kind("reporter.ledger.settle", &kind, written).await
    }

    /// Returns the receipt of an effect that is done.
    pub(crate) async fn receipt(
        &self,
        ticket: &TicketKey,
        id: &str,
    ) -> Result<Option<EffectReceipts>, Error> {
        let known = self.read(&self.effects, &key_of(ticket, id)).await?;
        Ok(known.row().and_then(|record| record.receipt))
    }

    /// Replaces the receipt of an effect that was found in another place or is gone. Without a receipt, the effect is
    /// performed again.
    pub(crate) async fn correct(
        &self,
        ticket: &TicketKey,
        id: &str,
        fence: ReporterFence,
        receipt: Option<EffectReceipts>,
    ) -> Result<(), Error> {
        let key = key_of(ticket, id);
        let LedgerRow::Row(record, last) = self.read(&self.effects, &key).await? else {
            return Ok(());
        };
        // The row may belong to another reporter by now, and a correction must not undo its work.
        if record.fence > fence {
            return Err(Error::Superseded);
        }
        let record = EffectRecord {
            intent_at: None,
            fence,
            receipt,
            ..record
        };
        let put = self.effects.put(&key, &record, Some(last));
        failpoint::around_kind("reporter.ledger.correct", effect_kind(id), put).await?;
        Ok(())
    }

    /// Returns the ticket's board with its revision.
    ///
    /// # Errors
    /// [`Error::Superseded`] if a reporter with a newer fence wrote it.
    pub(crate) async fn board(
        &self,
        ticket: &TicketKey,
        fence: ReporterFence,
    ) -> Result<(StatusBoard, Option<TableRevision>), Error> {
        match self.read(&self.boards, &RecordKey::board(ticket)).await? {
            LedgerRow::Row(board, _) if board.fence > fence => Err(Error::Superseded),
            LedgerRow::Row(board, revision) => Ok((board, Some(revision))),
            LedgerRow::Lost(revision) => Ok((StatusBoard::default(), Some(revision))),
            LedgerRow::Nothing => Ok((StatusBoard::default(), None)),
        }
    }

    /// Returns the ticket's board without regard to its fence.
    pub(crate) async fn newest_board(&self, ticket: &TicketKey) -> Result<Option<StatusBoard>, Error> {
        Ok(self.read(&self.boards, &RecordKey::board(ticket)).await?.row())
    }

    /// Writes the ticket's board, if `last` is its current revision.
    pub(crate) async fn keep_board(
        &self,
        ticket: &TicketKey,
        board: &StatusBoard,
        last: Option<TableRevision>,
    ) -> Result<TableRevision, Error> {
        let put = self.boards.put(RecordKey::board(ticket), board, last);
        Ok(failpoint::around("reporter.ledger.board", put).await?)
    }

    async fn write(&self, intent: &mut EffectIntent, record: EffectRecord) -> Result<(), Error> {
        intent.last = Some(self.effects.put(&intent.key, &record, intent.last).await?);
        Ok(())
    }

    /// Takes over the ticket's cursor.
    ///
    /// # Errors
    /// [`Error::Superseded`] if a reporter with a newer fence has it.
    pub(crate) async fn take_cursor(
        &self,
        ticket: &TicketKey,
        fence: ReporterFence,
    ) -> Result<(Cursor, TableRevision), Error> {
        let key = RecordKey::cursor(ticket);
        let (known, last) = match self.read(&self.cursors, &key).await? {
            LedgerRow::Row(cursor, _) if cursor.fence > fence => return Err(Error::Superseded),
            LedgerRow::Row(cursor, revision) => (cursor, Some(revision)),
            // The reports are read from the start. Settled ones have an outcome, so they are not repeated.
            LedgerRow::Lost(revision) => (Cursor::default(), Some(revision)),
            LedgerRow::Nothing => (Cursor::default(), None),
        };
        let cursor = Cursor {
            fence,
            crashes: Some(count_crashes(&known, fence)),
            ..known
        };
        let put = self.cursors.put(&key, &cursor, last);
        let revision = failpoint::around("reporter.ledger.take", put).await?;
        Ok((cursor, revision))
    }

    /// Records that this reporter returns the ticket without a crash.
    pub(crate) async fn give_cursor_back(
        &self,
        ticket: &TicketKey,
        cursor: &Cursor,
        last: TableRevision,
    ) -> Result<(), Error> {
        // An absent count marks a cursor that was returned, in contrast to a count of zero.
        let given_back = Cursor {
            crashes: None,
            ..cursor.clone()
        };
        self.move_cursor(ticket, &given_back, last).await.map(drop)
    }

    /// Returns the fence of the last reporter that took the ticket's cursor.
    pub(crate) async fn newest_fence(&self, ticket: &TicketKey) -> Result<Option<ReporterFence>, Error> {
        let known = self.read(&self.cursors, &RecordKey::cursor(ticket)).await?;
        Ok(known.row().map(|cursor| cursor.fence))
    }

    /// Moves the ticket's cursor, if `last` is its current revision.
    pub(crate) async fn move_cursor(
        &self,
        ticket: &TicketKey,
        cursor: &Cursor,
        last: TableRevision,
    ) -> Result<TableRevision, Error> {
        let key = RecordKey::cursor(ticket);
        let put = self.cursors.put(&key, cursor, Some(last));
        Ok(failpoint::around("reporter.ledger.move", put).await?)
    }

    /// Returns the outcome of a report that was settled before, or the place of the one to come.
    pub(crate) async fn outcome(
        &self,
        ticket: &TicketKey,
        report: &OutboundId,
    ) -> Result<KnownOutcome, Error> {
        let key = RecordKey::outcome(ticket, report);
        Ok(match self.read(&self.outcomes, &key).await? {
            LedgerRow::Row(outcome, _) => KnownOutcome::Settled(outcome),
            LedgerRow::Lost(revision) => KnownOutcome::Open(OutcomePlace {
                key,
                last: Some(revision),
            }),
            LedgerRow::Nothing => KnownOutcome::Open(OutcomePlace { key, last: None }),
        })
    }

    /// Stores the outcome of a report, so that a repeated delivery has the same outcome.
    ///
    /// # Errors
    /// [`Error::Superseded`] if another reporter stored one since the place was read.
    pub(crate) async fn keep_outcome(
        &self,
        place: OutcomePlace,
        outcome: &OutboundOutcome,
    ) -> Result<(), Error> {
        let put = self.outcomes.put(&place.key, outcome, place.last);
        failpoint::around("reporter.ledger.outcome", put).await?;
        Ok(())
    }
}

/// Returns the id of a ticket's status comment, which is also its marker.
pub(crate) fn status_id(ticket: &TicketKey) -> String {
    format!("{STATUS_ID_START}{ticket}")
}

/// Splits the id `<report>/<effect>`; `None` for the id of a status comment.
fn split_effect_id(id: &str) -> Option<(&str, &str)> {
    id.rsplit_once('/').filter(|_| !id.starts_with(STATUS_ID_START))
}

/// Returns the kind in an effect's id: its name, or `status` for the status comment.
fn effect_kind(id: &str) -> &str {
    match split_effect_id(id) {
        // Further effects of the same kind have a number as suffix.
        Some((_, name)) => name.split('.').next().unwrap_or(name),
        None => "status",
    }
}

/// Returns the key of an effect's row by its id: `<report>/<effect>`, or the id of the status comment.
fn key_of(ticket: &TicketKey, id: &str) -> RecordKey {
    match split_effect_id(id) {
        Some((report, effect)) => RecordKey::effect(ticket, report, effect),
        None => RecordKey::status(ticket),
    }
}

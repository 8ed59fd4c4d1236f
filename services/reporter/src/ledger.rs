//! The ledger: which effects were attempted and done, and how far each ticket's reports are settled.

use domain::{ReportFence, ReportId, ReportOutcome, TicketKey, Timestamp};
use queue::{Bucket, Queue, Revision, Table};
use serde::{Deserialize, Serialize};

use crate::board::Board;

/// Why the ledger did not answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Somebody with a newer fence works on the ticket.
    #[error("somebody else works on the ticket")]
    Superseded,
    /// The queue failed.
    #[error(transparent)]
    Queue(queue::Error),
}

impl From<queue::Error> for Error {
    fn from(error: queue::Error) -> Self {
        match error {
            queue::Error::Conflict => Self::Superseded,
            queue::Error::Unavailable(_) | queue::Error::Corrupt { .. } | queue::Error::Topology(_) => {
                Self::Queue(error)
            }
        }
    }
}

/// One row of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EffectRecord {
    /// When the attempt began whose outcome is not known; absent: none is outstanding.
    pub(crate) intent_at: Option<Timestamp>,
    /// The fence of the attempt.
    pub(crate) fence: ReportFence,
    /// How many attempts there were.
    pub(crate) attempts: u32,
    /// What the effect made; present: never again.
    pub(crate) receipt: Option<String>,
}

/// How far a ticket's reports are settled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// Stream sequence of the last settled report.
    pub(crate) sequence: u64,
    /// The fence of who moved it.
    pub(crate) fence: ReportFence,
    /// How often the next report was tried in vain.
    #[serde(default)]
    pub(crate) tries: u32,
    /// When the first of these tries was.
    #[serde(default)]
    pub(crate) since: Option<Timestamp>,
}

/// What the ledger says to somebody who wants to perform an effect.
#[derive(Debug)]
pub(crate) enum Claim {
    /// It is done; this is its receipt.
    Done(String),
    /// Go ahead.
    Open(Intent),
}

/// The right to perform one effect.
#[derive(Debug)]
pub(crate) struct Intent {
    id: String,
    fence: ReportFence,
    last: Option<Revision>,
    /// How many attempts there were before.
    pub(crate) attempts: u32,
    /// When an earlier attempt began whose outcome nobody knows.
    pub(crate) open_since: Option<Timestamp>,
}

impl Intent {
    fn record(&self, intent_at: Option<Timestamp>, receipt: Option<String>) -> EffectRecord {
        EffectRecord {
            intent_at,
            fence: self.fence,
            attempts: self.attempts,
            receipt,
        }
    }
}

/// The ledger's tables.
#[derive(Clone)]
pub(crate) struct Ledger {
    effects: Table<EffectRecord>,
    cursors: Table<Cursor>,
    boards: Table<Board>,
    outcomes: Table<ReportOutcome>,
}

impl Ledger {
    /// The ledger of a queue.
    pub(crate) fn new(queue: &Queue) -> Self {
        let bucket = Bucket::Effects;
        Self {
            effects: queue.table(bucket),
            cursors: queue.table(bucket),
            boards: queue.table(bucket),
            outcomes: queue.table(bucket),
        }
    }

    /// Asks to perform an effect: refused when somebody newer has it, and not needed when it is done. Every later write
    /// is compared with the row as it is read here.
    pub(crate) async fn claim(&self, id: &str, fence: ReportFence) -> Result<Claim, Error> {
        let intent = match self.effects.get(id).await? {
            Some((
                EffectRecord {
                    receipt: Some(receipt),
                    ..
                },
                _,
            )) => return Ok(Claim::Done(receipt)),
            Some((record, _)) if record.fence > fence => return Err(Error::Superseded),
            Some((record, revision)) => Intent {
                id: id.to_owned(),
                fence,
                last: Some(revision),
                attempts: record.attempts,
                open_since: record.intent_at,
            },
            None => Intent {
                id: id.to_owned(),
                fence,
                last: None,
                attempts: 0,
                open_since: None,
            },
        };
        Ok(Claim::Open(intent))
    }

    /// Writes that an attempt begins now: right before the outward write, never after it.
    pub(crate) async fn attempt(&self, intent: &mut Intent, now: Timestamp) -> Result<(), Error> {
        intent.attempts += 1;
        intent.open_since = Some(now);
        self.write(intent, intent.record(Some(now), None)).await
    }

    /// Writes that the attempt certainly did nothing, so that the next one need not look for it.
    pub(crate) async fn withdraw(&self, mut intent: Intent) -> Result<(), Error> {
        let record = intent.record(None, None);
        self.write(&mut intent, record).await
    }

    /// Writes the receipt.
    pub(crate) async fn settle(&self, mut intent: Intent, receipt: String) -> Result<(), Error> {
        let record = intent.record(intent.open_since, Some(receipt));
        self.write(&mut intent, record).await
    }

    /// What the effect made, when its receipt is there.
    pub(crate) async fn receipt(&self, id: &str) -> Result<Option<String>, Error> {
        Ok(self.effects.get(id).await?.and_then(|(record, _)| record.receipt))
    }

    /// Replaces the receipt of an effect that turned out to be elsewhere or gone; without one it is performed anew.
    pub(crate) async fn correct(
        &self,
        id: &str,
        fence: ReportFence,
        receipt: Option<String>,
    ) -> Result<(), Error> {
        let Some((record, last)) = self.effects.get(id).await? else {
            return Ok(());
        };
        if record.fence > fence {
            return Err(Error::Superseded);
        }
        let record = EffectRecord {
            intent_at: None,
            fence,
            receipt,
            ..record
        };
        self.effects.put(id, &record, Some(last)).await?;
        Ok(())
    }

    /// The ticket's board, as long as nobody newer wrote it.
    pub(crate) async fn board(
        &self,
        ticket: &TicketKey,
        fence: ReportFence,
    ) -> Result<(Board, Option<Revision>), Error> {
        match self.boards.get(&board_key(ticket)).await? {
            Some((board, _)) if board.fence > fence => Err(Error::Superseded),
            Some((board, revision)) => Ok((board, Some(revision))),
            None => Ok((Board::default(), None)),
        }
    }

    /// The ticket's board, whoever wrote it.
    pub(crate) async fn newest_board(&self, ticket: &TicketKey) -> Result<Option<Board>, Error> {
        Ok(self.boards.get(&board_key(ticket)).await?.map(|(board, _)| board))
    }

    /// Writes the ticket's board.
    pub(crate) async fn keep_board(
        &self,
        ticket: &TicketKey,
        board: &Board,
        last: Option<Revision>,
    ) -> Result<Revision, Error> {
        Ok(self.boards.put(&board_key(ticket), board, last).await?)
    }

    async fn write(&self, intent: &mut Intent, record: EffectRecord) -> Result<(), Error> {
        intent.last = Some(self.effects.put(&intent.id, &record, intent.last).await?);
        Ok(())
    }

    /// Takes the ticket's cursor over, unless somebody newer has it.
    pub(crate) async fn take_cursor(
        &self,
        ticket: &TicketKey,
        fence: ReportFence,
    ) -> Result<(Cursor, Revision), Error> {
        let key = cursor_key(ticket);
        let (known, last) = match self.cursors.get(&key).await? {
            Some((cursor, _)) if cursor.fence > fence => return Err(Error::Superseded),
            Some((cursor, revision)) => (cursor, Some(revision)),
            None => (Cursor::default(), None),
        };
        let cursor = Cursor { fence, ..known };
        let revision = self.cursors.put(&key, &cursor, last).await?;
        Ok((cursor, revision))
    }

    /// The fence of who took the ticket's cursor last.
    pub(crate) async fn newest_fence(&self, ticket: &TicketKey) -> Result<Option<ReportFence>, Error> {
        let known = self.cursors.get(&cursor_key(ticket)).await?;
        Ok(known.map(|(cursor, _)| cursor.fence))
    }

    /// Moves the ticket's cursor.
    pub(crate) async fn move_cursor(
        &self,
        ticket: &TicketKey,
        cursor: &Cursor,
        last: Revision,
    ) -> Result<Revision, Error> {
        Ok(self.cursors.put(&cursor_key(ticket), cursor, Some(last)).await?)
    }

    /// How a report was settled before.
    pub(crate) async fn outcome(&self, report: &ReportId) -> Result<Option<ReportOutcome>, Error> {
        Ok(self
            .outcomes
            .get(&outcome_key(report))
            .await?
            .map(|(outcome, _)| outcome))
    }

    /// Keeps how a report was settled, so that a repeated delivery says the same.
    pub(crate) async fn keep_outcome(&self, report: &ReportId, outcome: &ReportOutcome) -> Result<(), Error> {
        self.outcomes.put(&outcome_key(report), outcome, None).await?;
        Ok(())
    }
}

fn cursor_key(ticket: &TicketKey) -> String {
    format!("cursor:{ticket}")
}

fn board_key(ticket: &TicketKey) -> String {
    format!("board:{ticket}")
}

fn outcome_key(report: &ReportId) -> String {
    format!("outcome:{report}")
}

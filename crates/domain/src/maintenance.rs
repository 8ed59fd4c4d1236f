//! Maintenance that ingest asks for and the reporter carries out: ingest faces strangers, so it deletes nothing itself.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{RecordKind, Stored, TicketKey, Timestamp};

/// A request for maintenance. Ingest writes it, the reporter carries it out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceOrder {
    /// Its identity.
    pub id: String,
    /// Instant of the order.
    pub at: Timestamp,
    /// The caller.
    pub by: String,
    /// The task.
    pub task: MaintenanceTask,
}

/// A task of maintenance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "snake_case")]
pub enum MaintenanceTask {
    /// Forget everything that is stored of a ticket without live runs.
    ForgetTicket {
        /// The ticket.
        ticket: TicketKey,
    },
    /// Append a report of the dead letters to its log again, and drop the letter.
    ReviveReport {
        /// The letter's sequence.
        letter: u64,
    },
    /// Drop a dead letter.
    DropLetter {
        /// The letter's sequence.
        letter: u64,
    },
}

impl MaintenanceOrder {
    /// Time that orders and their answers are kept.
    pub const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
    /// Tickets that are forgotten within an hour at most: a stolen token or a captured ingest empties no store.
    pub const TICKETS_AN_HOUR: usize = 60;
}

impl Stored for MaintenanceOrder {
    const KIND: RecordKind = RecordKind::Control;
}

/// State of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceAnswer {
    /// Instant at which a reporter took it up. Without an outcome long after that, the reporter died over it.
    pub taken_at: Timestamp,
    /// The outcome; absent while it is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<MaintenanceOutcome>,
    /// True when a ticket was forgotten, which counts against [`MaintenanceOrder::TICKETS_AN_HOUR`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forgot_ticket: bool,
}

impl Stored for MaintenanceAnswer {
    const KIND: RecordKind = RecordKind::Ledger;
}

/// Outcome of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum MaintenanceOutcome {
    /// It is done.
    Done,
    /// The thing that it names is not there.
    Missing,
    /// It is not allowed as things are.
    Refused {
        /// In words, for the caller.
        reason: String,
    },
}

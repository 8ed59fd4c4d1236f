//! Orders of ingest for the reporter outside of runs: maintenance, and pull requests of API callers. Ingest
//! faces the internet, so the reporter carries them out.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    identity::{ticket::TicketKey, time::Timestamp},
    journal::{kind::RecordKind, record_format::StoredRecord},
};

/// A request for maintenance. Ingest writes it, the reporter carries it out.
// An account at NATS that may delete records could empty every store. Only the reporter has it, which
// receives the least text of strangers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceOrder {
    /// Unique id of the order.
    pub id: String,
    /// Time of the request.
    pub at: Timestamp,
    /// Name of the API caller.
    pub by: String,
    /// The task to carry out.
    pub task: MaintenanceTask,
}

/// A maintenance task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "snake_case")]
pub enum MaintenanceTask {
    /// Deletes every record of a ticket without active runs.
    ForgetTicket {
        /// The ticket to delete.
        ticket: TicketKey,
    },
    /// Appends a dead-lettered report to its log again and deletes the letter.
    ReviveReport {
        /// The letter's stream sequence.
        letter: u64,
    },
    /// Deletes a dead letter.
    DropLetter {
        /// The letter's stream sequence.
        letter: u64,
    },
}

impl MaintenanceOrder {
    /// Retention of orders and their answers.
    pub const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
    /// Maximum number of tickets that are deleted per hour. It limits the damage of a stolen token or a
    /// compromised ingest.
    pub const TICKETS_AN_HOUR: usize = 60;
}

impl StoredRecord for MaintenanceOrder {
    const KIND: RecordKind = RecordKind::Control;
}

/// State of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceAnswer {
    /// Time at which a reporter started it. An order without an outcome long after this time means that the
    /// reporter crashed.
    pub taken_at: Timestamp,
    /// The outcome; absent while the order is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<MaintenanceOutcome>,
    /// True when a ticket was deleted, which counts against [`MaintenanceOrder::TICKETS_AN_HOUR`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forgot_ticket: bool,
}

impl StoredRecord for MaintenanceAnswer {
    const KIND: RecordKind = RecordKind::Ledger;
}

/// Outcome of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum MaintenanceOutcome {
    /// The task was carried out.
    Done,
    /// The named ticket or letter does not exist.
    Missing,
    /// The current state does not permit the task.
    Refused {
        /// Reason for the caller.
        reason: String,
    },
}

/// A caller's request for a pull request. Ingest writes it, the reporter carries it out.
// A call may name no issue, so it has no ticket whose log could contain it. Each service writes to the bucket
// that it owns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestCall {
    /// The caller's idempotency key: a repeated request counts once.
    pub id: String,
    /// Time of the request.
    pub at: Timestamp,
    /// Name of the API caller.
    pub by: String,
    /// The request in the format of `docs/schemas/pull-request-api-input.schema.json`.
    pub request: Value,
}

impl PullRequestCall {
    /// Retention of calls and their answers.
    pub const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
}

impl StoredRecord for PullRequestCall {
    const KIND: RecordKind = RecordKind::Control;
}

/// State of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestAnswer {
    /// Time at which a reporter started it. A call without an answer long after this time means that the
    /// reporter crashed.
    pub taken_at: Timestamp,
    /// The answer in the format of `docs/schemas/pull-request-output.schema.json`; absent while the call is
    /// in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
}

impl StoredRecord for PullRequestAnswer {
    const KIND: RecordKind = RecordKind::Ledger;
}

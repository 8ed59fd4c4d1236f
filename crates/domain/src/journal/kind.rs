//! Kinds of stored records.

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

/// Kind of a stored record, as dead letters, notices and errors name it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Display, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// A webhook delivery before its processing.
    Delivery,
    /// A trigger of a ticket.
    Trigger,
    /// An entry of a run's journal.
    Entry,
    /// A report for the reporter.
    Report,
    /// The row of a ticket.
    Row,
    /// A row of the reporter's ledger.
    Ledger,
    /// The ownership record of a head branch.
    Branch,
    /// The index record of our pull request.
    PullRequest,
    /// A record of the control table.
    Control,
    /// A dead letter of any stream.
    Letter,
    /// A ticket as a whole.
    Ticket,
    /// The overview of a run in listings.
    Overview,
}

impl RecordKind {
    /// All kinds, in the order of their declaration.
    pub const ALL: [Self; 12] = [
        Self::Delivery,
        Self::Trigger,
        Self::Entry,
        Self::Report,
        Self::Row,
        Self::Ledger,
        Self::Branch,
        Self::PullRequest,
        Self::Control,
        Self::Letter,
        Self::Ticket,
        Self::Overview,
    ];

    /// The name in the API, in subjects and in logs.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

//! Kinds of stored records.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Kind of a stored record, as dead letters, notices and errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delivery => "delivery",
            Self::Trigger => "trigger",
            Self::Entry => "entry",
            Self::Report => "report",
            Self::Row => "row",
            Self::Ledger => "ledger",
            Self::Branch => "branch",
            Self::PullRequest => "pull_request",
            Self::Control => "control",
            Self::Letter => "letter",
            Self::Ticket => "ticket",
            Self::Overview => "overview",
        }
    }
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

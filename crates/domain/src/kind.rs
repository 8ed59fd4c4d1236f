//! Kinds of stored records.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a stored record is, as dead letters, notices and errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// A webhook delivery.
    Delivery,
    /// A trigger.
    Trigger,
    /// An entry of a journal.
    Entry,
    /// A report.
    Report,
    /// A ticket's row.
    Row,
    /// A row of the reporter's ledger.
    Ledger,
    /// The record of a head branch.
    Branch,
    /// The record of a pull request of ours.
    PullRequest,
    /// A control record.
    Control,
    /// A dead letter.
    Letter,
    /// A ticket as a whole.
    Ticket,
    /// A run as listings show it.
    Overview,
}

impl RecordKind {
    /// Every kind.
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

//! Ids of runs, calls and reports.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    identity::{InvalidId, text_serde, ticket::TicketKey},
    journal::kind::RecordKind,
};

/// Id of a run: the ticket and the stream sequence of the trigger that opened it, `jira:ENG-12@57`. The same
/// trigger always yields the same id, so a redelivered trigger cannot open a second run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId {
    ticket: TicketKey,
    sequence: u64,
}

impl RunId {
    /// Returns the id of the run that the trigger at `sequence` opens.
    pub fn new(ticket: TicketKey, sequence: u64) -> Self {
        Self { ticket, sequence }
    }

    /// The ticket of the run.
    pub fn ticket(&self) -> &TicketKey {
        &self.ticket
    }

    /// Stream sequence of the trigger that opened the run.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the id of the call or report requested at `position` of the run's journal.
    pub fn call(&self, position: u64) -> CallId {
        CallId(format!("{self}:{position}"))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.ticket, self.sequence)
    }
}

impl FromStr for RunId {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "a run such as jira:ENG-12@57";
        let (ticket, sequence) = text
            .rsplit_once('@')
            .ok_or_else(|| InvalidId::new(text, expected))?;
        let sequence = sequence.parse().map_err(|_| InvalidId::new(text, expected))?;
        Ok(Self {
            ticket: ticket.parse()?,
            sequence,
        })
    }
}
text_serde!(RunId);

/// Id of an outbound operation: run id and journal position, `jira:ENG-12@57:9`. A resumed run repeats the
/// id.
// A repeated operation has the same id, so executor and reporter recognize it and perform it once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(String);

impl CallId {
    /// Returns the id of a read in the reply of this call that runs before its turn:
    /// `jira:ENG-12@57:9+2`.
    #[must_use]
    pub fn read_ahead(&self, number: usize) -> Self {
        Self(format!("{self}+{number}"))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Id of a report: the id of the requesting call, or `notice:<ticket>@<trigger sequence>` for a notice
/// without a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OutboundId(String);

impl OutboundId {
    /// Returns the id of the notice for the trigger at `sequence`.
    pub fn notice(ticket: &TicketKey, sequence: u64) -> Self {
        // Each kind of id has a separate prefix: the reporter treats two reports with the same id as
        // one.
        Self(format!("notice:{ticket}@{sequence}"))
    }

    /// Returns the id of the notice about the progress of a first clone that a call waits for.
    pub fn first_clone(call: &CallId, percent: u8) -> Self {
        Self(format!("{call}:clone:{percent}"))
    }

    /// Returns the id of the notice that the ticket is quarantined after its triggers up to `sequence`.
    pub fn quarantine(ticket: &TicketKey, sequence: u64) -> Self {
        Self(format!("quarantine:{ticket}@{sequence}"))
    }

    /// Returns the id of the acknowledgement for the trigger at `sequence`.
    pub fn seen(ticket: &TicketKey, sequence: u64) -> Self {
        Self(format!("seen:{ticket}@{sequence}"))
    }

    /// Returns the id of the notice that the record at `sequence` of a log is unreadable.
    pub fn unreadable(what: RecordKind, ticket: &TicketKey, sequence: u64) -> Self {
        Self(format!("unreadable-{what}:{ticket}@{sequence}"))
    }

    /// Returns the id of the notice that a report was abandoned because reporters crashed on it.
    pub fn poison(&self) -> Self {
        Self(format!("poison-{self}"))
    }

    /// Returns the journal position of the request; absent for a notice.
    pub fn position(&self) -> Option<u64> {
        let (_, position) = self.0.rsplit_once(':')?;
        position.parse().ok()
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<CallId> for OutboundId {
    fn from(call: CallId) -> Self {
        Self(call.0)
    }
}

impl fmt::Display for OutboundId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

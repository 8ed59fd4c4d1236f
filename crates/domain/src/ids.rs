//! Names of runs, calls and reports.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    invalid::{InvalidId, text_serde},
    kind::RecordKind,
    ticket::TicketKey,
};

/// One run: the ticket and the sequence of the trigger that opened it, `jira:ENG-12@57`. The same trigger always
/// gives the same id, so nobody opens a run twice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId {
    ticket: TicketKey,
    sequence: u64,
}

impl RunId {
    /// The run that the trigger at `sequence` opens.
    pub fn new(ticket: TicketKey, sequence: u64) -> Self {
        Self { ticket, sequence }
    }

    /// The ticket it works on.
    pub fn ticket(&self) -> &TicketKey {
        &self.ticket
    }

    /// Stream sequence of the trigger that opened it.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The id of the call or report requested at `position` of the run's journal.
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

/// Whatever reaches outside: run id and journal position, `jira:ENG-12@57:9`. Resuming repeats it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(String);

impl CallId {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One report: the call that asked for it, or `notice:<ticket>@<trigger sequence>` for a notice without a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReportId(String);

impl ReportId {
    /// The notice that the trigger at `sequence` calls for.
    pub fn notice(ticket: &TicketKey, sequence: u64) -> Self {
        Self(format!("notice:{ticket}@{sequence}"))
    }

    /// The notice of how far the first clone is that a call waits for.
    pub fn first_clone(call: &CallId, percent: u8) -> Self {
        Self(format!("{call}:clone:{percent}"))
    }

    /// The notice that the ticket is quarantined, its triggers folded up to `cursor`.
    pub fn quarantine(ticket: &TicketKey, cursor: u64) -> Self {
        Self(format!("quarantine:{ticket}@{cursor}"))
    }

    /// The answer to the order that the trigger at `sequence` gives: it was seen.
    pub fn seen(ticket: &TicketKey, sequence: u64) -> Self {
        Self(format!("seen:{ticket}@{sequence}"))
    }

    /// The notice that the record at `sequence` of a log could not be read.
    pub fn unreadable(what: RecordKind, ticket: &TicketKey, sequence: u64) -> Self {
        Self(format!("unreadable-{what}:{ticket}@{sequence}"))
    }

    /// The notice that a report was given up because reporters crashed at it.
    pub fn poison(&self) -> Self {
        Self(format!("poison-{self}"))
    }

    /// Where in its run's journal it was asked for; absent for a notice.
    pub fn position(&self) -> Option<u64> {
        let (_, position) = self.0.rsplit_once(':')?;
        position.parse().ok()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<CallId> for ReportId {
    fn from(call: CallId) -> Self {
        Self(call.0)
    }
}

impl fmt::Display for ReportId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

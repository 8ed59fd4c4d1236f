//! Names of repositories, commits, runs, calls and reports.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::TicketKey;

/// Why a text is not the id it claims to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct InvalidId {
    /// The text, cut to 120 characters.
    pub text: String,
    /// What it should have looked like, with an example.
    pub expected: &'static str,
}

impl InvalidId {
    pub(crate) fn new(text: &str, expected: &'static str) -> Self {
        Self {
            text: text.chars().take(120).collect(),
            expected,
        }
    }
}

macro_rules! text_serde {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }
    };
}
pub(crate) use text_serde;

/// A repository on GitHub: `acme/shop`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepositoryName {
    owner: String,
    name: String,
}

impl RepositoryName {
    /// Checks both parts: ASCII letters, digits, `-`, `_` and `.`; at most 100 characters; not `.` or `..`.
    ///
    /// # Errors
    /// [`InvalidId`] when a part breaks those rules (they are GitHub's).
    pub fn new(owner: &str, name: &str) -> Result<Self, InvalidId> {
        let is_part = |part: &str| {
            !part.is_empty()
                && part.len() <= 100
                && part != "."
                && part != ".."
                && part
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        if is_part(owner) && is_part(name) {
            Ok(Self {
                owner: owner.to_owned(),
                name: name.to_owned(),
            })
        } else {
            Err(InvalidId::new(
                &format!("{owner}/{name}"),
                "a repository such as acme/shop",
            ))
        }
    }

    /// The account or organisation.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The repository without its owner.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for RepositoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

impl FromStr for RepositoryName {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (owner, name) = text
            .split_once('/')
            .ok_or_else(|| InvalidId::new(text, "a repository such as acme/shop"))?;
        Self::new(owner, name)
    }
}
text_serde!(RepositoryName);

/// A git commit id: 40 (SHA-1) or 64 (SHA-256) lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitId(String);

impl CommitId {
    /// The hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first twelve digits, for people.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for CommitId {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if matches!(text.len(), 40 | 64) && is_hex {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidId::new(
                text,
                "a commit id of 40 or 64 lower-case hexadecimal digits",
            ))
        }
    }
}
text_serde!(CommitId);

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

    /// The notice that the ticket is quarantined, its triggers folded up to `cursor`.
    pub fn quarantine(ticket: &TicketKey, cursor: u64) -> Self {
        Self(format!("quarantine:{ticket}@{cursor}"))
    }

    /// The notice that the record at `sequence` of a log (`trigger`, `report`) could not be read.
    pub fn unreadable(what: &str, ticket: &TicketKey, sequence: u64) -> Self {
        Self(format!("unreadable-{what}:{ticket}@{sequence}"))
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

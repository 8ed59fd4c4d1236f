//! Keys of tables.

use std::fmt;

use domain::{ReportId, RepositoryName, RunId, TicketKey};

use super::token::{decode, encode};

/// The key of a record in a table: parts from the general to the particular, each of them any text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    /// The ledger's row of one effect; `effect` is unique within the report.
    pub fn effect(ticket: &TicketKey, report: &str, effect: &str) -> Self {
        Self::from(ticket).and(report).and(effect)
    }

    /// How a report was settled.
    pub fn outcome(ticket: &TicketKey, report: &ReportId) -> Self {
        Self::from(ticket).and(report.as_str()).and("outcome")
    }

    /// The last part of the key of every cursor.
    pub const CURSOR: &str = "cursor";

    /// How far a ticket's reports are settled.
    pub fn cursor(ticket: &TicketKey) -> Self {
        Self::from(ticket).and(Self::CURSOR)
    }

    /// The ticket's board of comments.
    pub fn board(ticket: &TicketKey) -> Self {
        Self::from(ticket).and("board")
    }

    /// The ticket's status comment.
    pub fn status(ticket: &TicketKey) -> Self {
        Self::from(ticket).and("status")
    }

    /// The record of a run.
    pub fn run(run: &RunId) -> Self {
        Self::from(run.ticket()).and(&run.sequence().to_string())
    }

    /// What a planner sees of a pool.
    pub fn pool(pool: &str, planner: &str) -> Self {
        Self::from(pool).and(planner)
    }

    pub(crate) fn branch(repository: &RepositoryName, branch: &str, ticket: &TicketKey) -> Self {
        Self::from(repository.to_string().as_str())
            .and(branch)
            .and(&ticket.to_string())
    }

    pub(crate) fn pull_request(repository: &RepositoryName, number: u64, ticket: &TicketKey) -> Self {
        Self::from(repository.to_string().as_str())
            .and(&number.to_string())
            .and(&ticket.to_string())
    }

    /// The key with one more part.
    #[must_use]
    pub fn and(self, part: &str) -> Self {
        Self(format!("{}.{}", self.0, encode(part)))
    }

    /// The parts.
    pub fn parts(&self) -> Vec<String> {
        self.0.split('.').filter_map(decode).collect()
    }

    /// The ticket that the first part names, when it names one.
    pub fn ticket(&self) -> Option<TicketKey> {
        decode(self.0.split('.').next()?)?.parse().ok()
    }

    pub(crate) fn tokens(&self) -> &str {
        &self.0
    }

    pub(crate) fn of_tokens(tokens: &str) -> Option<Self> {
        let are_tokens = tokens.split('.').all(|token| decode(token).is_some());
        are_tokens.then(|| Self(tokens.to_owned()))
    }
}

impl From<&str> for Key {
    /// The key of one part.
    fn from(text: &str) -> Self {
        Self(encode(text))
    }
}

impl From<&String> for Key {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&TicketKey> for Key {
    fn from(ticket: &TicketKey) -> Self {
        Self::from(ticket.to_string().as_str())
    }
}

impl From<&Self> for Key {
    fn from(key: &Self) -> Self {
        key.clone()
    }
}

impl fmt::Display for Key {
    /// The parts, separated by ` / `, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts().join(" / "))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

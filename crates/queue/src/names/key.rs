//! Keys of records in tables, and digests for keys of any length.

use std::fmt;

use data_encoding::HEXLOWER;
use domain::{OutboundId, RepositoryName, RunId, TicketKey};

use super::token::{decode_token, encode_token};

/// Key of a record in a table: parts from the general to the particular. A part is any text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey(String);

impl RecordKey {
    /// Key of one effect in the reporter's ledger; `effect` is unique within the report.
    pub fn effect(ticket: &TicketKey, report: &str, effect: &str) -> Self {
        Self::from(ticket).and(report).and(effect)
    }

    /// Key of the outcome of a report.
    pub fn outcome(ticket: &TicketKey, report: &OutboundId) -> Self {
        Self::from(ticket).and(report.as_str()).and("outcome")
    }

    /// Last part of the key of every cursor.
    pub const CURSOR: &str = "cursor";

    /// Key of the cursor of a ticket: the sequence up to which its reports are settled.
    pub fn cursor(ticket: &TicketKey) -> Self {
        Self::from(ticket).and(Self::CURSOR)
    }

    /// Key of the record of a ticket's status comments.
    pub fn board(ticket: &TicketKey) -> Self {
        Self::from(ticket).and("board")
    }

    /// Key of the ticket's status comment.
    pub fn status(ticket: &TicketKey) -> Self {
        Self::from(ticket).and("status")
    }

    /// Key of the record of a run.
    pub fn run(run: &RunId) -> Self {
        Self::from(run.ticket()).and(&run.sequence().to_string())
    }

    /// Key of one planner's view of a pool.
    pub fn pool(pool: &str, planner: &str) -> Self {
        Self::from(pool).and(planner)
    }

    pub(crate) fn branch(repository: &RepositoryName, branch: &str, ticket: &TicketKey) -> Self {
        Self::from(repository.to_string().as_str())
            .and(branch)
            .and(&ticket.to_string())
    }

    /// Key of the record of a pull request.
    pub fn pull_request(repository: &RepositoryName, number: u64, ticket: &TicketKey) -> Self {
        Self::from(repository.to_string().as_str())
            .and(&number.to_string())
            .and(&ticket.to_string())
    }

    /// Returns the key with another part appended.
    #[must_use]
    pub fn and(self, part: &str) -> Self {
        Self(format!("{}.{}", self.0, encode_token(part)))
    }

    /// Decoded parts of the key, in order.
    pub fn parts(&self) -> Vec<String> {
        self.0.split('.').filter_map(decode_token).collect()
    }

    /// Ticket in the first part, or `None` when that part is not a ticket key.
    pub fn ticket(&self) -> Option<TicketKey> {
        decode_token(self.0.split('.').next()?)?.parse().ok()
    }

    /// Lower bound of the keys that have all parts of this one and more. It is not a valid key itself.
    pub(crate) fn first_below(&self) -> Self {
        Self(format!("{}.", self.0))
    }

    pub(crate) fn tokens(&self) -> &str {
        &self.0
    }

    pub(crate) fn of_tokens(tokens: &str) -> Option<Self> {
        let are_tokens = tokens.split('.').all(|token| decode_token(token).is_some());
        are_tokens.then(|| Self(tokens.to_owned()))
    }
}

impl From<&str> for RecordKey {
    /// Key that consists of one part.
    fn from(text: &str) -> Self {
        Self(encode_token(text))
    }
}

impl From<&String> for RecordKey {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&TicketKey> for RecordKey {
    fn from(ticket: &TicketKey) -> Self {
        Self::from(ticket.to_string().as_str())
    }
}

impl From<&Self> for RecordKey {
    fn from(key: &Self) -> Self {
        key.clone()
    }
}

impl fmt::Display for RecordKey {
    /// Writes the parts separated by ` / `, for logs and operators.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts().join(" / "))
    }
}

impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// Hashes a key of any length to a short token: the first 32 hexadecimal digits of its SHA-256.
pub(crate) fn key_hash(key: &str) -> String {
    let mut digest = sha256_hex(key.as_bytes());
    digest.truncate(32);
    digest
}

/// SHA-256 in lower-case hexadecimal, 64 digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref())
}

//! Identity of a Jira issue: its numeric id, the key that its records have, and its present key.
//!
//! An issue that moves to another project gets another key and keeps its id. The records of the ticket stay under
//! the key that they began with, so the newer keys are aliases of it.

use serde::{Deserialize, Serialize};

use crate::{
    identity::{instance::InstanceName, origin::ServiceOrigin, ticket::TicketKey, time::Timestamp},
    journal::{kind::RecordKind, record_format::StoredRecord},
};

/// Keys that one issue had, with the ticket that has its records. Ingest writes it; ingest and the reporter read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueIdentity {
    /// The numeric id at its site.
    pub id: u64,
    /// The ticket that has the records: triggers, journals, row and ledger.
    pub ticket: TicketKey,
    /// The present key.
    pub key: TicketKey,
    /// Other keys that it had, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<TicketKey>,
    /// Time of the event that named the present key. An event before it changes nothing.
    pub at: Timestamp,
}

impl StoredRecord for IssueIdentity {
    const KIND: RecordKind = RecordKind::Control;
}

impl IssueIdentity {
    /// Most earlier keys that stay aliases. With more moves, the oldest alias is forgotten.
    pub const MOST_EARLIER: usize = 20;

    /// Returns the identity of an issue whose records are those of `ticket`.
    pub const fn new(id: u64, ticket: TicketKey, key: TicketKey, at: Timestamp) -> Self {
        Self {
            id,
            ticket,
            key,
            earlier: Vec::new(),
            at,
        }
    }

    /// Returns true when the present key differs from the one of the records.
    pub fn is_moved(&self) -> bool {
        self.key != self.ticket
    }

    /// Returns the identity after a move, and the alias that it no longer has.
    #[must_use]
    pub fn moved_to(mut self, key: TicketKey, at: Timestamp) -> (Self, Option<TicketKey>) {
        let left = std::mem::replace(&mut self.key, key);
        self.at = at;
        if !self.earlier.contains(&left) {
            self.earlier.push(left);
        }
        let Self {
            key, ticket, earlier, ..
        } = &mut self;
        earlier.retain(|one| one != key && one != ticket);
        let forgotten = (earlier.len() > Self::MOST_EARLIER).then(|| earlier.remove(0));
        (self, forgotten)
    }

    /// Returns the identity with one more earlier key, and the alias that it no longer has.
    #[must_use]
    pub fn with_earlier(mut self, key: TicketKey) -> (Self, Option<TicketKey>) {
        if self.keys().contains(&&key) {
            return (self, None);
        }
        self.earlier.push(key);
        let forgotten = (self.earlier.len() > Self::MOST_EARLIER).then(|| self.earlier.remove(0));
        (self, forgotten)
    }

    /// All keys: that of the records, the present one, and the earlier ones.
    pub fn keys(&self) -> Vec<&TicketKey> {
        let present = self.is_moved().then_some(&self.key);
        std::iter::once(&self.ticket)
            .chain(present)
            .chain(&self.earlier)
            .collect()
    }

    /// Name of the control record of an issue by its id.
    pub fn name_of_id(instance: Option<&InstanceName>, id: u64) -> String {
        format!("issue:{}#{id}", ServiceOrigin::Jira(instance.cloned()))
    }

    /// Name of the control record of an issue by one of its keys.
    pub fn name_of_key(key: &TicketKey) -> String {
        format!("issue-key:{key}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_key(text: &str) -> TicketKey {
        text.parse().unwrap()
    }

    fn build_identity() -> IssueIdentity {
        IssueIdentity::new(
            100,
            parse_key("jira:OLD-1"),
            parse_key("jira:OLD-1"),
            Timestamp::default(),
        )
    }

    fn list_keys(identity: &IssueIdentity) -> Vec<String> {
        identity.keys().iter().map(|key| key.short()).collect()
    }

    #[test]
    fn moved_issue_keeps_key_of_records() {
        let at = Timestamp::from_unix_ms(5);
        let (moved, forgotten) = build_identity().moved_to(parse_key("jira:NEW-5"), at);
        assert_eq!(
            (moved.ticket.short(), moved.key.short()),
            ("OLD-1".to_owned(), "NEW-5".to_owned())
        );
        assert_eq!((moved.is_moved(), forgotten, moved.at), (true, None, at));
        let (again, _) = moved.moved_to(parse_key("jira:X-9"), at);
        assert_eq!(list_keys(&again), ["OLD-1", "X-9", "NEW-5"]);
        let (back, _) = again.moved_to(parse_key("jira:OLD-1"), at);
        assert!(!back.is_moved());
        assert_eq!(list_keys(&back), ["OLD-1", "NEW-5", "X-9"]);
        let (newer, _) = back.moved_to(parse_key("jira:NEW-5"), at);
        assert_eq!(list_keys(&newer), ["OLD-1", "NEW-5", "X-9"]);
    }

    #[test]
    fn key_of_late_event_is_alias_alone() {
        let (moved, _) = build_identity().moved_to(parse_key("jira:X-9"), Timestamp::default());
        let (known, forgotten) = moved.with_earlier(parse_key("jira:NEW-5"));
        assert_eq!((known.key.short().as_str(), forgotten), ("X-9", None));
        assert_eq!(list_keys(&known), ["OLD-1", "X-9", "NEW-5"]);
        let (same, _) = known.clone().with_earlier(parse_key("jira:OLD-1"));
        assert_eq!(same, known);
    }

    #[test]
    fn aliases_of_issue_are_bounded() {
        let mut identity = build_identity();
        let mut dropped = Vec::new();
        for number in 1..=30 {
            let (moved, forgotten) =
                identity.moved_to(parse_key(&format!("jira:P{number}-1")), Timestamp::default());
            identity = moved;
            dropped.extend(forgotten.map(|key| key.short()));
        }
        assert_eq!(identity.earlier.len(), IssueIdentity::MOST_EARLIER);
        assert_eq!(dropped.first().map(String::as_str), Some("P1-1"));
        assert!(list_keys(&identity).contains(&"OLD-1".to_owned()));
        assert!(list_keys(&identity).contains(&"P30-1".to_owned()));
    }

    #[test]
    fn record_names_differ_by_site() {
        let dc: InstanceName = "dc".parse().unwrap();
        assert_eq!(IssueIdentity::name_of_id(None, 7), "issue:jira#7");
        assert_eq!(IssueIdentity::name_of_id(Some(&dc), 7), "issue:jira+dc#7");
        assert_eq!(
            IssueIdentity::name_of_key(&parse_key("jira+dc:A-1")),
            "issue-key:jira+dc:A-1"
        );
    }
}

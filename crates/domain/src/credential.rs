//! When credentials end: what services tell of theirs, and never more than that.

use serde::{Deserialize, Serialize};

use crate::{Instance, RecordKind, Stored, Timestamp};

/// When the credentials of one service end, as far as its settings say so. The service writes it at its start, also when there
/// is nothing to tell any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialEnds {
    /// One for each credential whose end is known.
    #[serde(default)]
    pub ends: Vec<CredentialEnd>,
}

/// When one credential ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialEnd {
    /// What it is for, as the settings call it: `jira_reader`, `jira_writer`.
    pub kind: String,
    /// Of which instance; absent: the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
    /// When it does not hold any more.
    pub ends: Timestamp,
}

impl Stored for CredentialEnds {
    const KIND: RecordKind = RecordKind::Control;
}

impl CredentialEnds {
    /// The key of a service's record in the control table.
    pub fn key(service: &str) -> String {
        format!("credentials:{service}")
    }
}

impl CredentialEnd {
    /// People hear of it so many days before.
    pub const SOON_DAYS: u64 = 30;

    /// Whether somebody has to see to it: it ends soon, or has ended.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.ends.since(now).as_secs() / 86_400 < Self::SOON_DAYS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_due_a_month_before_its_end_and_stays_so() {
        let at = |day: &str| Timestamp::parse(&format!("{day}T00:00:00Z")).unwrap();
        let end = CredentialEnd {
            kind: "jira_reader".to_owned(),
            instance: None,
            ends: at("2027-01-31"),
        };
        for (now, is_due) in [
            ("2027-01-01", false),
            ("2027-01-02", true),
            ("2027-01-31", true),
            ("2027-03-01", true),
        ] {
            assert_eq!(end.is_due(at(now)), is_due, "{now}");
        }
    }
}

//! Expiry dates of credentials, as services report them, and the identity in the certificate of a service.
//! No record contains a credential.

use serde::{Deserialize, Serialize};

use crate::{
    identity::{instance::InstanceName, time::Timestamp},
    journal::{kind::RecordKind, record_format::StoredRecord},
};

/// Expiry dates of one service's credentials, from its settings. The service writes the record at its start,
/// also with an empty list.
// Each service reports its own credentials, because only it reads their settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialEnds {
    /// One entry per credential with a known expiry date.
    #[serde(default)]
    pub ends: Vec<CredentialEnd>,
}

/// Expiry date of one credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialEnd {
    /// Name of the credential in the settings: `jira_reader`, `jira_writer`.
    pub kind: String,
    /// The instance that it belongs to; absent: the default instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceName>,
    /// Time at which the credential expires.
    pub ends: Timestamp,
}

impl StoredRecord for CredentialEnds {
    const KIND: RecordKind = RecordKind::Control;
}

impl CredentialEnds {
    /// The key of a service's record in the control table.
    pub fn key(service: &str) -> String {
        format!("credentials:{service}")
    }
}

impl CredentialEnd {
    /// Number of days before the expiry from which users are notified.
    pub const SOON_DAYS: u64 = 30;

    /// Returns true when the credential needs a renewal: it expires soon or has expired.
    pub fn is_due(&self, now: Timestamp) -> bool {
        // `since` saturates at zero, so an expired credential stays due.
        self.ends.since(now).as_secs() / 86_400 < Self::SOON_DAYS
    }
}

/// Returns the only URI (SPIFFE format) in the certificate of a service.
///
/// A host name only identifies the location of a peer. The URI identifies the service.
// A URI cannot be confused with a host name that the authority issued for another purpose.
pub fn service_identity(service: &str) -> String {
    format!("spiffe://journeyman/{service}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credential_is_due_from_thirty_days_before() {
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

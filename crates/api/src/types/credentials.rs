//! Expiry dates of the services' credentials. No answer contains a credential.

use domain::{CredentialEnd, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Expiry date of a service's credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CredentialView {
    /// Name of the credential in the settings: `jira_reader`, `jira_writer`.
    pub kind: String,
    /// The instance that it belongs to; absent: the default instance.
    pub instance: Option<String>,
    /// Time at which the credential expires.
    pub ends: String,
    /// Number of remaining whole days; 0 on the last day and afterwards.
    pub days: u64,
    /// True when the credential needs a renewal: it expires within 30 days, or has expired.
    pub is_due: bool,
}

impl CredentialView {
    /// Returns the state of the credential at a time.
    pub fn of(end: &CredentialEnd, now: Timestamp) -> Self {
        Self {
            kind: end.kind.clone(),
            instance: end.instance.as_ref().map(ToString::to_string),
            ends: end.ends.to_string(),
            days: end.ends.since(now).as_secs() / 86_400,
            is_due: end.is_due(now),
        }
    }

    /// Describes the expiry for people, e.g. `the token of jira_writer (instance dc) ends on 2027-01-31, in
    /// 10 days`.
    pub fn words(&self) -> String {
        let instance = self.instance.as_ref();
        let place = instance.map_or_else(String::new, |name| format!(" (instance {name})"));
        // The first ten characters of an RFC 3339 time are its date.
        let day = self.ends.get(..10).unwrap_or(&self.ends);
        let when = match self.days {
            0 => String::new(),
            1 => ", in 1 day".to_owned(),
            days => format!(", in {days} days"),
        };
        format!("the token of {}{place} ends on {day}{when}", self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_text_names_remaining_days() {
        let at = |day: &str| Timestamp::parse(&format!("{day}T00:00:00Z")).unwrap();
        let mut end = CredentialEnd {
            kind: "jira_writer".to_owned(),
            instance: None,
            ends: at("2027-01-31"),
        };
        let view_at = |end: &CredentialEnd, now| {
            let view = CredentialView::of(end, at(now));
            (view.is_due, view.words())
        };
        let words = |rest: &str| format!("the token of jira_writer {rest}");
        assert_eq!(
            view_at(&end, "2026-12-01"),
            (false, words("ends on 2027-01-31, in 61 days"))
        );
        assert_eq!(view_at(&end, "2027-02-07"), (true, words("ends on 2027-01-31")));
        end.instance = "dc".parse().ok();
        assert_eq!(
            view_at(&end, "2027-01-30"),
            (true, words("(instance dc) ends on 2027-01-31, in 1 day"))
        );
    }
}

//! Credentials of the services: when they end, and nothing of themselves.

use domain::{CredentialEnd, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// When a credential of a service ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CredentialView {
    /// What it is for, as the settings call it: `jira_reader`, `jira_writer`.
    pub kind: String,
    /// Of which instance; absent: the default one.
    pub instance: Option<String>,
    /// When it does not hold any more.
    pub ends: String,
    /// How many whole days are left; 0 on its last day and from then on.
    pub days: u64,
    /// Whether somebody has to see to it: it ends within 30 days, or has ended.
    pub is_due: bool,
}

impl CredentialView {
    /// As it is at this moment.
    pub fn of(end: &CredentialEnd, now: Timestamp) -> Self {
        Self {
            kind: end.kind.clone(),
            instance: end.instance.as_ref().map(ToString::to_string),
            ends: end.ends.to_string(),
            days: end.ends.since(now).as_secs() / 86_400,
            is_due: end.is_due(now),
        }
    }

    /// In words, e.g. `the token of jira_writer (instance dc) ends on 2027-01-31, in 10 days`.
    pub fn words(&self) -> String {
        let instance = self.instance.as_ref();
        let place = instance.map_or_else(String::new, |name| format!(" (instance {name})"));
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
    fn an_end_is_told_with_the_days_that_are_left() {
        let at = |day: &str| Timestamp::parse(&format!("{day}T00:00:00Z")).unwrap();
        let mut end = CredentialEnd {
            kind: "jira_writer".to_owned(),
            instance: None,
            ends: at("2027-01-31"),
        };
        let told = |end: &CredentialEnd, now| {
            let view = CredentialView::of(end, at(now));
            (view.is_due, view.words())
        };
        let words = |rest: &str| format!("the token of jira_writer {rest}");
        assert_eq!(
            told(&end, "2026-12-01"),
            (false, words("ends on 2027-01-31, in 61 days"))
        );
        assert_eq!(told(&end, "2027-02-07"), (true, words("ends on 2027-01-31")));
        end.instance = "dc".parse().ok();
        assert_eq!(
            told(&end, "2027-01-30"),
            (true, words("(instance dc) ends on 2027-01-31, in 1 day"))
        );
    }
}

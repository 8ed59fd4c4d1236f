//! Who may instruct Journeyman on Jira: ask for work, give orders, and be followed in comments.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use domain::Instance;
use tokio::time::Instant;

use crate::outside::{Outside, ReadError};

/// How long an answer of Jira's counts, so that a ticket with many comments costs one question for each of its people.
const REMEMBERED: Duration = Duration::from_secs(60);
const MOST_REMEMBERED: usize = 10_000;

/// An account of an instance.
type Whose = (Option<Instance>, String);

/// The people whose words count, by the setting `ingest.jira_trigger_group`.
pub(crate) struct Instructors {
    who: Who,
    known: Mutex<HashMap<Whose, (Instant, bool)>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    Nobody,
    Members(String),
    Anybody,
}

impl Instructors {
    /// The setting: a group's name, `*` for everybody who can act on the ticket, empty for nobody.
    pub(crate) fn new(setting: &str) -> Self {
        let who = match setting.trim() {
            "" => Who::Nobody,
            "*" => Who::Anybody,
            group => Who::Members(group.to_owned()),
        };
        Self {
            who,
            known: Mutex::default(),
        }
    }

    /// The group that one has to be in; empty when none is set.
    pub(crate) fn group(&self) -> &str {
        match &self.who {
            Who::Members(group) => group,
            Who::Nobody | Who::Anybody => "",
        }
    }

    /// Whether an account is one of them. No account, that of a deleted person, is one of nobody's group.
    pub(crate) async fn include(
        &self,
        outside: &Outside,
        instance: Option<&Instance>,
        account: Option<&str>,
    ) -> Result<bool, ReadError> {
        match (&self.who, account) {
            (Who::Anybody, _) => Ok(true),
            (Who::Nobody, _) | (Who::Members(_), None | Some("")) => Ok(false),
            (Who::Members(group), Some(account)) => self.is_member(outside, instance, group, account).await,
        }
    }

    async fn is_member(
        &self,
        outside: &Outside,
        instance: Option<&Instance>,
        group: &str,
        account: &str,
    ) -> Result<bool, ReadError> {
        let whose = (instance.cloned(), account.to_owned());
        if let Some(known) = self.remembered(&whose) {
            return Ok(known);
        }
        let groups = outside.jira_groups(instance, account).await?;
        let is_member = groups.iter().any(|name| name == group);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_REMEMBERED {
            known.clear();
        }
        known.insert(whose, (Instant::now(), is_member));
        Ok(is_member)
    }

    fn remembered(&self, account: &Whose) -> Option<bool> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, is_member) = known.get(account)?;
        (asked.elapsed() < REMEMBERED).then_some(*is_member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_names_a_group_everybody_or_nobody() {
        assert_eq!(
            Instructors::new(" agents ").who,
            Who::Members("agents".to_owned())
        );
        assert_eq!(Instructors::new("*").who, Who::Anybody);
        assert_eq!(Instructors::new("").who, Who::Nobody);
        assert_eq!(Instructors::new("agents").group(), "agents");
    }
}

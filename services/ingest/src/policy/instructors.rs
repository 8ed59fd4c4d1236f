//! Authorization on Jira: accounts that may request work and give commands, and whose comments are instructions.

use std::{collections::HashMap, time::Duration};

use domain::InstanceName;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::facts::tracker_reader::{ReadError, TrackerReader};

// Lifetime of a cached answer of Jira. A ticket with many comments then costs one request per author.
const REMEMBERED: Duration = Duration::from_secs(60);
const MOST_REMEMBERED: usize = 10_000;

/// Account id in a project of an instance.
type InstructorKey = (Option<InstanceName>, String, String);

/// Accounts with authority on Jira, by the settings `ingest.jira_trigger_group` and `ingest.jira_trigger_role`.
pub(crate) struct Instructors {
    who: InstructorGroup,
    /// Project role with authority; empty: none.
    role: String,
    known: Mutex<HashMap<InstructorKey, (Instant, bool)>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum InstructorGroup {
    Nobody,
    Members(String),
    Anybody,
}

impl Instructors {
    /// Parses the settings: a group name, `*` for every account that can act on the ticket, empty for no account; and a
    /// role name.
    pub(crate) fn new(group: &str, role: &str) -> Self {
        let who = match group.trim() {
            "" => InstructorGroup::Nobody,
            "*" => InstructorGroup::Anybody,
            group => InstructorGroup::Members(group.to_owned()),
        };
        Self {
            who,
            role: role.trim().to_owned(),
            known: Mutex::default(),
        }
    }

    /// Group whose members have authority; empty: none.
    pub(crate) fn group(&self) -> &str {
        match &self.who {
            InstructorGroup::Members(group) => group,
            InstructorGroup::Nobody | InstructorGroup::Anybody => "",
        }
    }

    /// Project role whose members have authority; empty: none.
    pub(crate) fn role(&self) -> &str {
        &self.role
    }

    /// True when the account has authority in the project. A missing account, such as that of a deleted user, has none.
    pub(crate) async fn include(
        &self,
        outside: &TrackerReader,
        (instance, project): (Option<&InstanceName>, &str),
        account: Option<&str>,
    ) -> Result<bool, ReadError> {
        if self.who == InstructorGroup::Anybody {
            return Ok(true);
        }
        let Some(account) = account.filter(|account| !account.is_empty()) else {
            return Ok(false);
        };
        if self.who == InstructorGroup::Nobody && self.role.is_empty() {
            return Ok(false);
        }
        // Group membership is independent of the project. Without a role, one cache entry serves all projects.
        let place = if self.role.is_empty() { "" } else { project };
        let whose = (instance.cloned(), place.to_owned(), account.to_owned());
        if let Some(known) = self.remembered(&whose) {
            return Ok(known);
        }
        let may = self
            .fetch_membership(outside, (instance, project), account)
            .await?;
        // The lock is not held across the request. Concurrent misses only cost repeated requests.
        let mut known = self.known.lock();
        // The cache is only an optimization, so dropping it whole is simpler than an eviction order.
        if known.len() >= MOST_REMEMBERED {
            known.clear();
        }
        known.insert(whose, (Instant::now(), may));
        Ok(may)
    }

    async fn fetch_membership(
        &self,
        outside: &TrackerReader,
        (instance, project): (Option<&InstanceName>, &str),
        account: &str,
    ) -> Result<bool, ReadError> {
        let groups = outside.jira_groups(instance, account).await?;
        if matches!(&self.who, InstructorGroup::Members(group) if groups.contains(group)) {
            return Ok(true);
        }
        if self.role.is_empty() || project.is_empty() {
            return Ok(false);
        }
        let players = outside.jira_role(instance, project, &self.role).await?;
        let by_group = || players.groups.iter().any(|group| groups.contains(group));
        Ok(players.accounts.iter().any(|known| known == account) || by_group())
    }

    fn remembered(&self, account: &InstructorKey) -> Option<bool> {
        let known = self.known.lock();
        let (asked, is_member) = known.get(account)?;
        (asked.elapsed() < REMEMBERED).then_some(*is_member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructor_setting_parses_group_all_or_none() {
        assert_eq!(
            Instructors::new(" agents ", "").who,
            InstructorGroup::Members("agents".to_owned())
        );
        assert_eq!(Instructors::new("*", "").who, InstructorGroup::Anybody);
        assert_eq!(Instructors::new("", "").who, InstructorGroup::Nobody);
        let both = Instructors::new("agents", " Developers ");
        assert_eq!((both.group(), both.role()), ("agents", "Developers"));
    }
}

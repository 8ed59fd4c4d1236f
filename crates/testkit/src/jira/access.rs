//! Group memberships, and permissions that accounts lack or have additionally.

use std::collections::BTreeSet;

use super::desk::JiraState;
use super::extractors::create_writer_account;
use super::state::{JiraAccount, PEOPLE};
use crate::http::lock_state;

/// Members of a project role: accounts and groups.
#[derive(Clone, Default)]
pub(super) struct ProjectRoleMembers {
    pub(super) people: Vec<JiraAccount>,
    pub(super) groups: Vec<String>,
}

impl JiraState {
    pub(super) fn set_developers(&self, people: Vec<JiraAccount>, groups: &[&str]) {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        *lock_state(&self.developers) = ProjectRoleMembers { people, groups };
    }

    pub(super) fn developers(&self) -> ProjectRoleMembers {
        lock_state(&self.developers).clone()
    }

    pub(super) fn set_groups(&self, account: &JiraAccount, groups: &[&str]) {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        lock_state(&self.groups).insert(account.id.clone(), groups);
    }

    pub(super) fn groups(&self, account: &str) -> Vec<String> {
        let own = lock_state(&self.groups).get(account).cloned();
        // Users without explicit groups are in the common groups. The two service accounts are in none.
        own.unwrap_or_else(|| match account.starts_with(PEOPLE) {
            true => self.common_groups.clone(),
            false => Vec::new(),
        })
    }

    /// Returns the names of all groups with members.
    pub(super) fn all_groups(&self) -> BTreeSet<String> {
        let own = lock_state(&self.groups);
        let common = self.common_groups.iter();
        own.values().flatten().chain(common).cloned().collect()
    }

    /// Returns the members of a group. One account represents all users of the common groups.
    pub(super) fn members(&self, group: &str) -> Vec<JiraAccount> {
        let own = lock_state(&self.groups);
        let named = own
            .iter()
            .filter(|(_, groups)| groups.iter().any(|one| one == group));
        let named = named.filter_map(|(id, _)| Some(JiraAccount::person(id.strip_prefix(PEOPLE)?)));
        let common = self.common_groups.iter().any(|one| one == group);
        named
            .chain(common.then(|| JiraAccount::person("Everybody")))
            .collect()
    }

    /// Returns the writer's account, or that of a user with explicit groups.
    pub(super) fn account(&self, id: &str) -> Option<JiraAccount> {
        let writer = create_writer_account();
        if writer.id == id {
            return Some(writer);
        }
        let name = id.strip_prefix(PEOPLE)?;
        let is_known = lock_state(&self.groups).contains_key(id);
        is_known.then(|| JiraAccount::person(name))
    }

    pub(super) fn withhold(&self, email: &str, permission: &str) {
        lock_state(&self.withheld).push((email.to_owned(), permission.to_owned()));
    }

    pub(super) fn restore(&self) {
        lock_state(&self.withheld).clear();
        lock_state(&self.granted).clear();
    }

    pub(super) fn is_withheld(&self, account: &JiraAccount, permission: &str) -> bool {
        lock_state(&self.withheld)
            .iter()
            .any(|(email, key)| *email == account.email && key == permission)
    }

    pub(super) fn grant(&self, email: &str, permission: &str) {
        lock_state(&self.granted).push((email.to_owned(), permission.to_owned()));
    }

    pub(super) fn is_granted(&self, account: &JiraAccount, permission: &str) -> bool {
        lock_state(&self.granted)
            .iter()
            .any(|(email, key)| *email == account.email && key == permission)
    }
}

//! Group memberships, and permissions that accounts lack or have additionally.

use std::collections::BTreeSet;

use super::desk::JiraState;
use super::extractors::create_writer_account;
use super::state::{JiraAccount, PEOPLE};

/// Members of a project role: accounts and groups.
#[derive(Clone, Default)]
pub(super) struct ProjectRoleMembers {
    pub(super) people: Vec<JiraAccount>,
    pub(super) groups: Vec<String>,
}

impl JiraState {
    pub(super) fn set_developers(&self, people: Vec<JiraAccount>, groups: &[&str]) {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        *self.developers.lock() = ProjectRoleMembers { people, groups };
    }

    pub(super) fn developers(&self) -> ProjectRoleMembers {
        self.developers.lock().clone()
    }

    pub(super) fn set_groups(&self, account: &JiraAccount, groups: &[&str]) {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        self.groups.lock().insert(account.id.clone(), groups);
    }

    pub(super) fn groups(&self, account: &str) -> Vec<String> {
        let own = self.groups.lock().get(account).cloned();
        // Users without explicit groups are in the common groups. The two service accounts are in none.
        own.unwrap_or_else(|| {
            if account.starts_with(PEOPLE) {
                self.common_groups.clone()
            } else {
                Vec::new()
            }
        })
    }

    /// Returns the names of all groups with members.
    pub(super) fn all_groups(&self) -> BTreeSet<String> {
        let own = self.groups.lock();
        let common = self.common_groups.iter();
        own.values().flatten().chain(common).cloned().collect()
    }

    /// Returns the members of a group. One account represents all users of the common groups.
    pub(super) fn members(&self, group: &str) -> Vec<JiraAccount> {
        let own = self.groups.lock();
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
        let is_known = self.groups.lock().contains_key(id);
        is_known.then(|| JiraAccount::person(name))
    }

    pub(super) fn withhold(&self, email: &str, permission: &str) {
        self.withheld
            .lock()
            .push((email.to_owned(), permission.to_owned()));
    }

    pub(super) fn restore(&self) {
        self.withheld.lock().clear();
        self.granted.lock().clear();
    }

    pub(super) fn is_withheld(&self, account: &JiraAccount, permission: &str) -> bool {
        self.withheld
            .lock()
            .iter()
            .any(|(email, key)| *email == account.email && key == permission)
    }

    pub(super) fn grant(&self, email: &str, permission: &str) {
        self.granted
            .lock()
            .push((email.to_owned(), permission.to_owned()));
    }

    pub(super) fn is_granted(&self, account: &JiraAccount, permission: &str) -> bool {
        self.granted
            .lock()
            .iter()
            .any(|(email, key)| *email == account.email && key == permission)
    }
}

//! Who is in which groups and roles, and which permissions an account lacks.

use super::desk::{Desk, Role};
use super::state::Account;
use crate::http::lock;

impl Desk {
    pub(super) fn set_groups(&self, account: &Account, groups: &[&str]) {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        lock(&self.groups).insert(account.id.clone(), groups);
    }

    pub(super) fn groups(&self, account: &str) -> Vec<String> {
        lock(&self.groups).get(account).cloned().unwrap_or_default()
    }

    pub(super) fn set_role(&self, project: &str, name: &str, people: Vec<Account>, groups: Vec<String>) {
        self.create_project(project);
        let mut roles = lock(&self.roles);
        roles.retain(|role| role.project != project || role.name != name);
        roles.push(Role {
            project: project.to_owned(),
            name: name.to_owned(),
            people,
            groups,
        });
    }

    pub(super) fn roles(&self, project: &str) -> Vec<Role> {
        let roles = lock(&self.roles);
        let of_project = roles.iter().filter(|role| role.project == project);
        of_project.cloned().collect()
    }

    pub(super) fn withhold(&self, email: &str, permission: &str) {
        lock(&self.withheld).push((email.to_owned(), permission.to_owned()));
    }

    pub(super) fn restore(&self) {
        lock(&self.withheld).clear();
    }

    pub(super) fn is_withheld(&self, account: &Account, permission: &str) -> bool {
        lock(&self.withheld)
            .iter()
            .any(|(email, key)| *email == account.email && key == permission)
    }
}

//! Who is in which groups, and which permissions an account lacks.

use super::desk::Desk;
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

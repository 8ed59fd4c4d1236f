//! JSON of accounts and their permissions.

use serde::Deserialize;

use crate::{Permission, User};

#[derive(Clone, Deserialize)]
pub(crate) struct WireUser {
    pub(crate) login: String,
    id: Option<u64>,
    /// `User` or `Bot`, as GitHub classifies it.
    #[serde(default)]
    pub(super) r#type: String,
}

impl WireUser {
    pub(super) fn is_bot(&self) -> bool {
        self.r#type == "Bot"
    }

    pub(super) fn into_user(self) -> User {
        User {
            is_bot: self.is_bot(),
            id: self.id,
            login: self.login,
        }
    }
}

pub(super) fn login(user: Option<WireUser>) -> String {
    // GitHub shows deleted accounts as the user `ghost`.
    user.map_or_else(|| "ghost".to_owned(), |user| user.login)
}

pub(super) fn id(user: Option<&WireUser>) -> Option<u64> {
    user.and_then(|user| user.id)
}

#[derive(Deserialize)]
pub(crate) struct WirePermission {
    permission: String,
    user: Option<WireUser>,
}

impl WirePermission {
    /// Permission of the account with this id. A released login may belong to another account now; the answer
    /// is then about that one.
    pub(crate) fn of(&self, account: u64) -> Permission {
        if id(self.user.as_ref()) != Some(account) {
            return Permission::None;
        }
        self.level()
    }

    /// Permission of the account that has the login at present.
    pub(crate) fn level(&self) -> Permission {
        match self.permission.as_str() {
            "admin" => Permission::Admin,
            "write" | "maintain" => Permission::Write,
            "read" | "triage" => Permission::Read,
            _ => Permission::None,
        }
    }
}

//! JSON of accounts and their permissions.

use serde::Deserialize;

use crate::{GitHubUser, RepositoryPermission};

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

    pub(super) fn into_user(self) -> GitHubUser {
        GitHubUser {
            is_bot: self.is_bot(),
            id: self.id,
            login: self.login,
        }
    }
}

/// Team of an organization.
#[derive(Deserialize)]
pub(crate) struct WireTeam {
    #[serde(default)]
    slug: String,
}

impl WireTeam {
    /// Name with the organization, as GitHub writes it; `None` for a team that GitHub does not name.
    pub(super) fn into_name(self, organization: &str) -> Option<String> {
        match (organization, self.slug.as_str()) {
            (_, "") => None,
            ("", _) => Some(self.slug),
            (organization, slug) => Some(format!("{organization}/{slug}")),
        }
    }
}

pub(super) fn resolve_login(user: Option<WireUser>) -> String {
    // GitHub shows deleted accounts as the user `ghost`.
    user.map_or_else(|| "ghost".to_owned(), |user| user.login)
}

pub(super) fn read_account_id(user: Option<&WireUser>) -> Option<u64> {
    user.and_then(|user| user.id)
}

#[derive(Deserialize)]
pub(crate) struct WireCollaboratorPermission {
    permission: String,
    user: Option<WireUser>,
}

impl WireCollaboratorPermission {
    /// Permission of the account with this id. A released login may belong to another account now; the answer
    /// is then about that one.
    pub(crate) fn of(&self, account: u64) -> RepositoryPermission {
        if read_account_id(self.user.as_ref()) != Some(account) {
            return RepositoryPermission::None;
        }
        self.level()
    }

    /// Permission of the account that has the login at present.
    pub(crate) fn level(&self) -> RepositoryPermission {
        match self.permission.as_str() {
            "admin" => RepositoryPermission::Admin,
            "write" | "maintain" => RepositoryPermission::Write,
            "read" | "triage" => RepositoryPermission::Read,
            _ => RepositoryPermission::None,
        }
    }
}

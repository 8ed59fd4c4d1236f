//! Accounts and what they may do.

use serde::Deserialize;

use crate::Permission;

#[derive(Clone, Deserialize)]
pub(crate) struct WireUser {
    pub(crate) login: String,
    /// `User` or `Bot`.
    #[serde(default)]
    pub(super) r#type: String,
}

pub(super) fn login(user: Option<WireUser>) -> String {
    user.map_or_else(|| "ghost".to_owned(), |user| user.login)
}

#[derive(Deserialize)]
pub(crate) struct WirePermission {
    permission: String,
}

impl From<WirePermission> for Permission {
    fn from(wire: WirePermission) -> Self {
        match wire.permission.as_str() {
            "admin" => Self::Admin,
            "write" | "maintain" => Self::Write,
            "read" | "triage" => Self::Read,
            _ => Self::None,
        }
    }
}

//! Who somebody is, and who plays a role.

use serde::Deserialize;

use domain::Account;

#[derive(Clone, Deserialize)]
pub(crate) struct WireAccount {
    #[serde(rename = "accountId")]
    account_id: Option<String>,
    // Data Center has names instead of account ids.
    name: Option<String>,
    #[serde(rename = "displayName", default)]
    display_name: String,
}

impl From<WireAccount> for Account {
    fn from(wire: WireAccount) -> Self {
        Self {
            id: wire.account_id.or(wire.name).unwrap_or_default(),
            display_name: wire.display_name,
        }
    }
}

/// A group of people.
#[derive(Deserialize)]
pub(crate) struct WireGroup {
    pub(crate) name: String,
}

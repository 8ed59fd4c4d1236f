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
    /// `atlassian`, `app` or `customer`.
    #[serde(rename = "accountType", default)]
    account_type: String,
}

impl From<WireAccount> for Account {
    fn from(wire: WireAccount) -> Self {
        Self {
            id: wire.account_id.or(wire.name).unwrap_or_default(),
            display_name: wire.display_name,
            is_bot: wire.account_type == "app",
        }
    }
}

/// An issue of which only its assignee is read.
#[derive(Deserialize)]
pub(crate) struct WireAssigneeOnly {
    fields: WireAssigneeField,
}

#[derive(Deserialize)]
struct WireAssigneeField {
    assignee: Option<WireAccount>,
}

impl From<WireAssigneeOnly> for Option<Account> {
    fn from(wire: WireAssigneeOnly) -> Self {
        wire.fields.assignee.map(Account::from)
    }
}

/// A group of people.
#[derive(Deserialize)]
pub(crate) struct WireGroup {
    pub(crate) name: String,
}

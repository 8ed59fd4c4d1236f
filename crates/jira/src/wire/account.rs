//! JSON of accounts, their groups, roles and permissions.

use std::collections::BTreeMap;

use domain::TrackerAccount;
use serde::{Deserialize, de::IgnoredAny};

use super::value_or_null;
use crate::{FoundGroups, RoleMembers};

#[derive(Clone, Deserialize)]
pub(crate) struct WireAccount {
    #[serde(rename = "accountId")]
    account_id: Option<String>,
    // A Data Center has names in the place of account ids, and keys, by which histories refer to users.
    name: Option<String>,
    key: Option<String>,
    #[serde(rename = "displayName", default, deserialize_with = "value_or_null")]
    display_name: String,
    /// `atlassian`, `app` or `customer`, in the Cloud.
    #[serde(rename = "accountType", default, deserialize_with = "value_or_null")]
    account_type: String,
}

impl WireAccount {
    /// True for a customer of a service desk.
    pub(crate) fn is_customer(&self) -> bool {
        self.account_type == "customer"
    }

    /// Key and name of a Data Center's user.
    pub(crate) fn key_and_name(&self) -> Option<(&str, &str)> {
        Some((self.key.as_deref()?, self.name.as_deref()?))
    }
}

impl From<WireAccount> for TrackerAccount {
    fn from(wire: WireAccount) -> Self {
        Self {
            id: wire.account_id.or(wire.name).unwrap_or_default(),
            display_name: wire.display_name,
            is_bot: wire.account_type == "app",
        }
    }
}

/// Issue with its assignee only.
#[derive(Deserialize)]
pub(crate) struct WireAssigneeOnly {
    fields: WireAssigneeField,
}

#[derive(Deserialize)]
struct WireAssigneeField {
    assignee: Option<WireAccount>,
}

impl From<WireAssigneeOnly> for Option<TrackerAccount> {
    fn from(wire: WireAssigneeOnly) -> Self {
        wire.fields.assignee.map(TrackerAccount::from)
    }
}

/// Group of accounts by its name.
#[derive(Deserialize)]
pub(crate) struct WireGroup {
    pub(crate) name: String,
}

/// User of a Data Center with its groups only. The Cloud answers with a list of groups.
#[derive(Deserialize)]
pub(crate) struct WireGroupsOnly {
    groups: WireGroupItems,
}

#[derive(Deserialize)]
struct WireGroupItems {
    items: Vec<WireGroup>,
}

impl WireGroupsOnly {
    pub(crate) fn groups(self) -> Vec<WireGroup> {
        self.groups.items
    }
}

/// Answer of the group picker.
#[derive(Deserialize)]
pub(crate) struct WirePickedGroups {
    groups: Vec<WireGroup>,
    #[serde(default)]
    total: usize,
}

impl From<WirePickedGroups> for FoundGroups {
    fn from(found: WirePickedGroups) -> Self {
        let names: Vec<String> = found.groups.into_iter().map(|group| group.name).collect();
        Self {
            has_more: found.total > names.len(),
            names,
        }
    }
}

/// Page of the accounts in a group.
#[derive(Deserialize)]
pub(crate) struct WireMembers {
    pub(crate) values: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
pub(crate) struct WireRole {
    actors: Vec<WireRoleActor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireRoleActor {
    actor_user: Option<WireActorUser>,
    actor_group: Option<WireGroup>,
    /// A Data Center has only the kind and name of a member.
    #[serde(default)]
    r#type: String,
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireActorUser {
    account_id: Option<String>,
    name: Option<String>,
}

impl From<WireRole> for RoleMembers {
    fn from(wire: WireRole) -> Self {
        let mut members = Self::default();
        for actor in wire.actors {
            let user = actor.actor_user.and_then(|user| user.account_id.or(user.name));
            let group = actor.actor_group.map(|group| group.name);
            match actor.r#type.as_str() {
                // The Cloud has the id in `actorUser`, a Data Center has the name in the member itself.
                "atlassian-user-role-actor" => members.accounts.extend(user.or(actor.name)),
                "atlassian-group-role-actor" => members.groups.extend(group.or(actor.name)),
                _ => {
                    members.accounts.extend(user);
                    members.groups.extend(group);
                }
            }
        }
        members
    }
}

/// Permissions by their keys.
#[derive(Deserialize)]
pub(crate) struct WirePermissions {
    pub(crate) permissions: BTreeMap<String, WirePermission>,
}

/// One permission, with or without it.
#[derive(Deserialize)]
pub(crate) struct WirePermission {
    #[serde(rename = "havePermission", default)]
    pub(crate) is_held: bool,
}

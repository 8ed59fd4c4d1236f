//! JSON of the members of a project role.

use serde::Deserialize;

use super::account::WireGroup;
use crate::RoleMembers;

#[derive(Deserialize)]
pub(crate) struct WireRole {
    #[serde(default)]
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

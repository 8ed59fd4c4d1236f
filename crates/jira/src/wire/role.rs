//! Who plays a role in a project.

use serde::Deserialize;

use super::account::WireGroup;
use crate::RoleMembers;

#[derive(Deserialize)]
pub(crate) struct WireRole {
    #[serde(default)]
    actors: Vec<WireActor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireActor {
    actor_user: Option<WireActorUser>,
    actor_group: Option<WireGroup>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireActorUser {
    account_id: Option<String>,
}

impl From<WireRole> for RoleMembers {
    fn from(wire: WireRole) -> Self {
        let mut members = Self::default();
        for actor in wire.actors {
            let account = actor.actor_user.and_then(|user| user.account_id);
            members.accounts.extend(account);
            members.groups.extend(actor.actor_group.map(|group| group.name));
        }
        members
    }
}

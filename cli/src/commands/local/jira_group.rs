//! Jira group whose members may request work: its existence and its members.

use jira::{Error, FoundGroups, JiraReader};

/// Value of the setting for every account that can act on a ticket.
pub(super) const EVERYBODY: &str = "*";

/// State of a group on a site.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GroupState {
    /// The group has members, or the account may not see them.
    Usable,
    /// The group has no active account.
    Empty,
    /// The site has other groups.
    Missing(FoundGroups),
    /// The account sees no group at all.
    Hidden,
}

/// Finds a group by its exact name.
pub(super) async fn inspect_group(reader: &JiraReader, group: &str) -> Result<GroupState, Error> {
    let is_it = |name: &String| name == group;
    if !reader.find_groups(group).await?.names.iter().any(is_it) {
        // Jira leaves out groups that the account may not see. The second search distinguishes a missing group
        // from hidden ones.
        let all = reader.find_groups("").await?;
        return Ok(match all.names.is_empty() {
            true => GroupState::Hidden,
            false => GroupState::Missing(all),
        });
    }
    match reader.has_members(group).await {
        Ok(true) => Ok(GroupState::Usable),
        Ok(false) => Ok(GroupState::Empty),
        // Jira Data Center shows the members of a group to administrators only.
        Err(Error::Forbidden { .. } | Error::NotFound { .. } | Error::Rejected { .. }) => {
            Ok(GroupState::Usable)
        }
        Err(error) => Err(error),
    }
}

/// Names of the groups on a site, as part of a sentence.
pub(super) fn list_groups(found: &FoundGroups) -> String {
    let names = found.names.join(", ");
    match found.has_more {
        true => format!("{names} and more"),
        false => names,
    }
}

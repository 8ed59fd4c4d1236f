//! The Jira group whose members may ask for work: whether there is one, and whether anybody is in it.

use jira::{Error, FoundGroups, Reader};

/// The setting's value for everybody who can act on a ticket.
pub(super) const EVERYBODY: &str = "*";

/// A group as a site shows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GroupState {
    /// It has members, or the account may not see whether it has.
    Usable,
    /// No active account is in it.
    Empty,
    /// The site has other groups.
    Missing(FoundGroups),
    /// The account sees no group at all.
    Hidden,
}

/// Looks a group up by its exact name.
pub(super) async fn inspect_group(reader: &Reader, group: &str) -> Result<GroupState, Error> {
    let is_it = |name: &String| name == group;
    if !reader.find_groups(group).await?.names.iter().any(is_it) {
        let all = reader.find_groups("").await?;
        return Ok(match all.names.is_empty() {
            true => GroupState::Hidden,
            false => GroupState::Missing(all),
        });
    }
    match reader.has_members(group).await {
        Ok(true) => Ok(GroupState::Usable),
        Ok(false) => Ok(GroupState::Empty),
        // A Data Center tells administrators alone who is in a group.
        Err(Error::Forbidden { .. } | Error::NotFound { .. } | Error::Rejected { .. }) => {
            Ok(GroupState::Usable)
        }
        Err(error) => Err(error),
    }
}

/// The groups that a site has, as a part of a sentence.
pub(super) fn list_groups(found: &FoundGroups) -> String {
    let names = found.names.join(", ");
    match found.has_more {
        true => format!("{names} and more"),
        false => names,
    }
}

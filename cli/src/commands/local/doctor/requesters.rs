//! Users who may request work on Jira: the group of the settings and its members.

use domain::{InstanceName, cause::format_error_chain};
use jira::{Error, FoundGroups, JiraReader};

use super::{DoctorFinding, DoctorReport, JiraAuthority, Remedy, find_within_limit};

/// Value of the setting for every account that can act on a ticket.
pub(in super::super) const EVERYBODY: &str = "*";

/// State of a group on a site.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum GroupState {
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
pub(in super::super) async fn inspect_group(reader: &JiraReader, group: &str) -> Result<GroupState, Error> {
    let is_it = |name: &String| name == group;
    if !reader.find_groups(group).await?.names.iter().any(is_it) {
        // Jira leaves out groups that the account may not see. The second search distinguishes a missing group
        // from hidden ones.
        let all = reader.find_groups("").await?;
        return Ok(if all.names.is_empty() {
            GroupState::Hidden
        } else {
            GroupState::Missing(all)
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
pub(in super::super) fn list_groups(found: &FoundGroups) -> String {
    let names = found.names.join(", ");
    if found.has_more {
        format!("{names} and more")
    } else {
        names
    }
}

/// Adds a finding for a site. `is_asked` is true when the site may be queried.
pub(super) async fn check_requesters(
    findings: &mut DoctorReport,
    instance: Option<&InstanceName>,
    reader: Option<&jira::Settings>,
    authority: &JiraAuthority,
    is_asked: bool,
) {
    let Some(reader) = reader else { return };
    let place = instance.map(|name| format!(" {name}")).unwrap_or_default();
    let name = format!("jira{place} requesters");
    let (group, role) = (
        authority.jira_trigger_group.trim(),
        authority.jira_trigger_role.trim(),
    );
    let finding = match (group, role) {
        ("", "") => DoctorFinding::Failed(
            "nobody may ask for work: ingest.jira_trigger_group and ingest.jira_trigger_role are empty"
                .to_owned(),
            Remedy::Requesters,
        ),
        ("", role) => DoctorFinding::Ok(format!("who has the role {role:?} in a ticket's project")),
        (EVERYBODY, _) => DoctorFinding::Ok("everybody who can act on a ticket".to_owned()),
        (group, _) if !is_asked => DoctorFinding::Skipped(format!("members of {group}; Jira is not asked")),
        (group, _) => find_within_limit(Remedy::Requesters, inspect_requesters(reader, group)).await,
    };
    findings.add(&name, finding);
}

async fn inspect_requesters(reader: &jira::Settings, group: &str) -> Result<DoctorFinding, String> {
    let reader = JiraReader::new(reader).map_err(|error| format_error_chain(&error))?;
    Ok(match inspect_group(&reader, group).await {
        Ok(GroupState::Usable) => DoctorFinding::Ok(format!("members of {group}")),
        Ok(GroupState::Empty) => DoctorFinding::Failed(
            format!("nobody may ask for work: the group {group} has no members"),
            Remedy::Requesters,
        ),
        Ok(GroupState::Missing(others)) => DoctorFinding::Failed(
            format!(
                "nobody may ask for work: Jira has no group {group}; it has {}",
                list_groups(&others)
            ),
            Remedy::Requesters,
        ),
        Ok(GroupState::Hidden) => DoctorFinding::Warn(format!(
            "members of {group}; the reader sees no group of Jira, so who is in it cannot be checked"
        )),
        // The check of the account reports its problems.
        Err(error) => DoctorFinding::Skipped(format!(
            "members of {group}; the groups of Jira cannot be read: {}",
            format_error_chain(&error)
        )),
    })
}

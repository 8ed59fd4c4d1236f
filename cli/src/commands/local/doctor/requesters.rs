//! Check that each Jira has users who may request work.

use domain::{InstanceName, cause::format_error_chain};
use jira::JiraReader;

use super::{
    super::jira_group::{EVERYBODY, GroupState, inspect_group, list_groups},
    DoctorFinding, DoctorReport, JiraAuthority, Remedy, find_within_limit,
};

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

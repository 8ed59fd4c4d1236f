//! Check that each Jira has users who may request work.

use domain::{Instance, cause::chain};
use jira::Reader;

use super::{
    super::jira_group::{EVERYBODY, GroupState, inspect_group, list_groups},
    Authority, Finding, Findings, Remedy, found_within,
};

/// Adds a finding for a site. `is_asked` is true when the site may be queried.
pub(super) async fn check(
    findings: &mut Findings,
    instance: Option<&Instance>,
    reader: Option<&jira::Settings>,
    authority: &Authority,
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
        ("", "") => Finding::Failed(
            "nobody may ask for work: ingest.jira_trigger_group and ingest.jira_trigger_role are empty"
                .to_owned(),
            Remedy::Requesters,
        ),
        ("", role) => Finding::Ok(format!("who has the role {role:?} in a ticket's project")),
        (EVERYBODY, _) => Finding::Ok("everybody who can act on a ticket".to_owned()),
        (group, _) if !is_asked => Finding::Skipped(format!("members of {group}; Jira is not asked")),
        (group, _) => found_within(Remedy::Requesters, look_up(reader, group)).await,
    };
    findings.add(&name, finding);
}

async fn look_up(reader: &jira::Settings, group: &str) -> Result<Finding, String> {
    let reader = Reader::new(reader).map_err(|error| chain(&error))?;
    Ok(match inspect_group(&reader, group).await {
        Ok(GroupState::Usable) => Finding::Ok(format!("members of {group}")),
        Ok(GroupState::Empty) => Finding::Failed(
            format!("nobody may ask for work: the group {group} has no members"),
            Remedy::Requesters,
        ),
        Ok(GroupState::Missing(others)) => Finding::Failed(
            format!(
                "nobody may ask for work: Jira has no group {group}; it has {}",
                list_groups(&others)
            ),
            Remedy::Requesters,
        ),
        Ok(GroupState::Hidden) => Finding::Warn(format!(
            "members of {group}; the reader sees no group of Jira, so who is in it cannot be checked"
        )),
        // The check of the account reports its problems.
        Err(error) => Finding::Skipped(format!(
            "members of {group}; the groups of Jira cannot be read: {}",
            chain(&error)
        )),
    })
}

//! Users who may request work on Jira.

use anyhow::bail;
use domain::cause::format_error_chain;
use jira::{Error, FoundGroups, JiraReader, Settings};

use super::{KnownSettings, print_result, prompt};
use crate::{
    account_settings,
    commands::local::{
        doctor::{EVERYBODY, GroupState, inspect_group, list_groups},
        setup::store::SetupStore,
    },
};

const FLAG: &str = "--requesters";
// Proposed groups: the first one that exists on the site. A name that ends in `-` is a prefix.
const USUAL: [&str; 5] = [
    "journeyman-users",
    "jira-software-users",
    "jira-software-users-",
    "jira-users",
    "jira-users-",
];

/// Stores the group of the flag, or the group that the user names, unless the settings have one.
pub(super) async fn choose_requesters(
    given: Option<String>,
    known: &KnownSettings,
    account: &Settings,
    store: &SetupStore,
) -> anyhow::Result<()> {
    let of_settings = (
        known.ingest.jira_trigger_group.trim(),
        known.ingest.jira_trigger_role.trim(),
    );
    match (of_settings, &given) {
        (("", ""), _) | (_, Some(_)) => {}
        (("", role), None) => {
            print_result(&format!("asks     who has the role {role} in a ticket's project"));
            return Ok(());
        }
        ((group, _), None) => {
            print_result(&describe_requesters(group));
            return Ok(());
        }
    }
    let reader = JiraReader::new(account)?;
    // The groups are only a proposal, so a failed search is ignored.
    let all = reader.find_groups("").await.unwrap_or_default();
    let mut asks_again = given.is_none();
    let group = loop {
        let group = match &given {
            Some(group) => group.trim().to_owned(),
            None => ask_group(&all).await?,
        };
        match find_group_problem(&reader, &group).await? {
            None => break group,
            // A flag gives the same answer each time, so only the answer of a user is asked for again.
            Some(problem) if asks_again && prompt::can_ask() => print_result(&format!("         {problem}")),
            Some(problem) => bail!("{FLAG} {group}: {problem}"),
        }
        asks_again = true;
    };
    store.set(&[account_settings::build_requesters_setting(&group)])?;
    print_result(&describe_requesters(&group));
    Ok(())
}

async fn ask_group(all: &FoundGroups) -> anyhow::Result<String> {
    if !prompt::can_ask() || all.names.is_empty() {
        let question = "Jira group whose members may ask for work (*: everybody who can act on a ticket)";
        return prompt::ask_text(None, FLAG, question).await;
    }
    for (place, name) in all.names.iter().enumerate() {
        let start = if place == 0 { "groups" } else { "" };
        print_result(&format!("{start:<8} {} {name}", place + 1));
    }
    if all.has_more {
        print_result("         and more");
    }
    let question =
        "Jira group whose members may ask for work, name or number (*: everybody who can act on a ticket)";
    let answer = prompt::ask_text_with_default(None, FLAG, question, propose_group(all)).await?;
    Ok(resolve_group(&answer, all).to_owned())
}

/// Group that an answer names or numbers. A name wins over a number.
fn resolve_group<'a>(answer: &'a str, all: &'a FoundGroups) -> &'a str {
    if all.names.iter().any(|name| name == answer) {
        answer
    } else {
        prompt::resolve_numbered_option(answer, &all.names)
    }
}

/// Proposed group.
fn propose_group(all: &FoundGroups) -> Option<String> {
    let named = |wanted: &&str| {
        all.names.iter().find(|name| {
            if wanted.ends_with('-') {
                name.starts_with(*wanted)
            } else {
                name == wanted
            }
        })
    };
    USUAL.iter().find_map(named).cloned()
}

/// Reason why members of this group could not request work.
async fn find_group_problem(reader: &JiraReader, group: &str) -> anyhow::Result<Option<String>> {
    if group == EVERYBODY {
        return Ok(None);
    }
    if group.is_empty() {
        return Ok(Some("a name is missing".to_owned()));
    }
    Ok(match inspect_group(reader, group).await {
        Ok(GroupState::Usable | GroupState::Hidden) => None,
        Ok(GroupState::Empty) => Some("nobody is in this group: add people to it first".to_owned()),
        Ok(GroupState::Missing(others)) => {
            Some(format!("Jira has no such group; it has {}", list_groups(&others)))
        }
        // `doctor` checks the group again at the end.
        Err(Error::Forbidden { .. }) => None,
        Err(error) => bail!(
            "the groups of Jira cannot be read: {}",
            format_error_chain(&error)
        ),
    })
}

fn describe_requesters(group: &str) -> String {
    match group {
        EVERYBODY => "asks     everybody who can act on a ticket".to_owned(),
        group => format!("asks     members of the Jira group {group}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_group_of_site_is_proposed() {
        let proposed = |names: &[&str]| {
            propose_group(&FoundGroups {
                names: names.iter().map(|name| (*name).to_owned()).collect(),
                has_more: false,
            })
        };
        assert_eq!(
            proposed(&["jira-users-acme", "journeyman-users"]).unwrap(),
            "journeyman-users"
        );
        assert_eq!(
            proposed(&["admins", "jira-users-acme"]).unwrap(),
            "jira-users-acme"
        );
        assert_eq!(proposed(&["admins", "developers"]), None);
    }

    #[test]
    fn group_is_chosen_by_name_or_number() {
        let all = FoundGroups {
            names: ["admins", "2", "jira-users"].map(str::to_owned).to_vec(),
            has_more: false,
        };
        for (answer, group) in [
            ("admins", "admins"),
            ("3", "jira-users"),
            ("2", "2"),
            ("0", "0"),
            ("4", "4"),
            ("*", "*"),
            ("others", "others"),
        ] {
            assert_eq!(resolve_group(answer, &all), group, "{answer}");
        }
    }
}

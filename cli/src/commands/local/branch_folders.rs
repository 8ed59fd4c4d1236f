//! Folders of our branches. Git stores a branch as a file, so a branch with the name of such a folder blocks every branch in
//! that folder.

use std::collections::BTreeSet;

use domain::RepositoryRules;

/// Folders for branches by the rules, as far as they do not depend on the ticket: `fix`, `feat`.
pub(super) fn list_branch_folders(rules: &RepositoryRules) -> BTreeSet<String> {
    let branching = &rules.branching;
    let mut folders = BTreeSet::new();
    let parts: Vec<&str> = branching.pattern.split('/').collect();
    let of_all = |part: &&&str| !part.contains("{ticket_key}") && !part.contains("{description}");
    let fixed = parts
        .iter()
        .take(parts.len().saturating_sub(1))
        .take_while(of_all)
        .count();
    for count in 1..=fixed {
        let folder = parts[..count].join("/");
        if folder.contains("{type}") {
            folders.extend(
                branching
                    .types
                    .values()
                    .map(|kind| folder.replace("{type}", kind)),
            );
        } else {
            folders.insert(folder);
        }
    }
    folders.retain(|folder| !folder.is_empty());
    folders
}

/// Warning about a branch of this name.
pub(super) fn describe_obstacle(branch: &str) -> String {
    format!(
        "the branch {branch} stands in the way of branches in the folder {branch}/, so these get other names: rename it, or \
         change branching.pattern in the rules"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_pattern_folders(pattern: &str) -> Vec<String> {
        let mut rules = RepositoryRules::default();
        rules.branching.types = [("bugfix", "fix"), ("feature", "feat")]
            .map(|(kind, short)| (kind.to_owned(), short.to_owned()))
            .into();
        pattern.clone_into(&mut rules.branching.pattern);
        list_branch_folders(&rules).into_iter().collect()
    }

    #[test]
    fn folders_end_where_the_ticket_begins() {
        for (pattern, expected) in [
            ("{type}/{ticket_key}-{description}", vec!["feat", "fix"]),
            ("bots/journeyman/{ticket_key}", vec!["bots", "bots/journeyman"]),
            (
                "jm/{type}/{ticket_key}/{description}",
                vec!["jm", "jm/feat", "jm/fix"],
            ),
            ("{ticket_key}/{description}", vec![]),
            ("jm-{ticket_key}", vec![]),
        ] {
            assert_eq!(list_pattern_folders(pattern), expected, "{pattern}");
        }
    }
}

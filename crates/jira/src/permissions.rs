//! What the two Jira accounts have to be allowed, and what for: the one list that docs/permissions.md shows and
//! `journeyman doctor` checks.

/// A permission that one of the accounts needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needed {
    /// Its key in the API, e.g. `ADD_COMMENTS`.
    pub key: &'static str,
    /// Its name on Jira's pages.
    pub title: &'static str,
    /// What for.
    pub reason: &'static str,
}

const fn needed(key: &'static str, title: &'static str, reason: &'static str) -> Needed {
    Needed { key, title, reason }
}

/// What the account of `[jira_reader]` needs.
pub const READER: [Needed; 2] = [
    needed(
        "BROWSE_PROJECTS",
        "Browse projects",
        "the ticket, its comments and history, what it is linked with; the search",
    ),
    needed(
        "USER_PICKER",
        "Browse users and groups (global)",
        "who may ask for work and give orders in comments",
    ),
];

/// What the account of `[jira_writer]` needs.
pub const WRITER: [Needed; 8] = [
    needed(
        "BROWSE_PROJECTS",
        "Browse projects",
        "the ticket, its comments and its workflow",
    ),
    needed("ADD_COMMENTS", "Add comments", "comments"),
    needed(
        "EDIT_OWN_COMMENTS",
        "Edit own comments",
        "the comments that are kept up to date",
    ),
    needed(
        "DELETE_OWN_COMMENTS",
        "Delete own comments",
        "a comment that was written twice",
    ),
    needed(
        "TRANSITION_ISSUES",
        "Transition issues",
        "in progress, review, done",
    ),
    needed("LINK_ISSUES", "Link issues", "the link to the pull request"),
    needed("EDIT_ISSUES", "Edit issues", "labels of a triage"),
    needed(
        "ASSIGN_ISSUES",
        "Assign issues",
        "the ticket goes to nobody when retries are used up",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_permissions_are_those_that_are_checked() {
        let page = include_str!("../../../docs/permissions.md");
        for (account, list) in [("reader", READER.as_slice()), ("writer", WRITER.as_slice())] {
            let rows: String = list
                .iter()
                .map(|needed| format!("| {} | `{}` | {} |\n", needed.title, needed.key, needed.reason))
                .collect();
            assert!(
                page.contains(&rows),
                "docs/permissions.md, Jira {account}:\n{rows}"
            );
        }
    }
}

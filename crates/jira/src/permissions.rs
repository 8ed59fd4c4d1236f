//! Permissions that the two Jira accounts need, with reasons: the one list for docs/permissions.md and
//! `journeyman doctor`.

/// Permission that one of the accounts needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequiredJiraPermission {
    /// Key in the API, e.g. `ADD_COMMENTS`.
    pub key: &'static str,
    /// Name on Jira's pages.
    pub title: &'static str,
    /// Purpose of the permission, as docs/permissions.md shows it.
    pub reason: &'static str,
}

const fn describe_permission(
    key: &'static str,
    title: &'static str,
    reason: &'static str,
) -> RequiredJiraPermission {
    RequiredJiraPermission { key, title, reason }
}

/// Permissions that the account of `[jira_reader]` needs.
pub const READER: [RequiredJiraPermission; 2] = [
    describe_permission(
        "BROWSE_PROJECTS",
        "Browse projects",
        "the ticket, its comments and history, what it is linked with; the search",
    ),
    describe_permission(
        "USER_PICKER",
        "Browse users and groups (global)",
        "who may ask for work and give orders in comments",
    ),
];

/// Permissions that the account of `[jira_writer]` needs.
pub const WRITER: [RequiredJiraPermission; 8] = [
    describe_permission(
        "BROWSE_PROJECTS",
        "Browse projects",
        "the ticket, its comments and its workflow",
    ),
    describe_permission("ADD_COMMENTS", "Add comments", "comments"),
    describe_permission(
        "EDIT_OWN_COMMENTS",
        "Edit own comments",
        "the comments that are kept up to date",
    ),
    describe_permission(
        "DELETE_OWN_COMMENTS",
        "Delete own comments",
        "a comment that was written twice",
    ),
    describe_permission(
        "TRANSITION_ISSUES",
        "Transition issues",
        "in progress, review, done",
    ),
    describe_permission(
        "LINK_ISSUES",
        "Link issues",
        "the link to the pull request; the link of a ticket with the one that it repeats",
    ),
    describe_permission(
        "EDIT_ISSUES",
        "Edit issues",
        "labels, priority and type of a triage",
    ),
    describe_permission(
        "ASSIGN_ISSUES",
        "Assign issues",
        "the ticket goes to an account where `agent.assign` says so, and to nobody when it is given back",
    ),
];

/// Permissions that the account of `[jira_reader]` should lack, because none of its calls needs them.
pub const READER_NEEDS_NOT: [RequiredJiraPermission; 7] = [
    describe_permission("ADD_COMMENTS", "Add comments", "the reader writes nothing"),
    describe_permission("EDIT_ISSUES", "Edit issues", "the reader writes nothing"),
    describe_permission(
        "TRANSITION_ISSUES",
        "Transition issues",
        "the reader writes nothing",
    ),
    describe_permission("CREATE_ISSUES", "Create issues", "the reader writes nothing"),
    describe_permission("DELETE_ISSUES", "Delete issues", "the reader writes nothing"),
    describe_permission("ADMINISTER_PROJECTS", "Administer projects", "nothing needs it"),
    describe_permission("ADMINISTER", "Administer Jira (global)", "nothing needs it"),
];

/// Permissions that the account of `[jira_writer]` should lack.
pub const WRITER_NEEDS_NOT: [RequiredJiraPermission; 3] = [
    describe_permission(
        "DELETE_ISSUES",
        "Delete issues",
        "nothing is deleted but own comments",
    ),
    describe_permission("ADMINISTER_PROJECTS", "Administer projects", "nothing needs it"),
    describe_permission("ADMINISTER", "Administer Jira (global)", "nothing needs it"),
];

/// Missing and superfluous permissions of an account in one project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermissionComparison {
    /// Needed permissions that it lacks.
    pub lacking: Vec<RequiredJiraPermission>,
    /// Held permissions that it should lack.
    pub excess: Vec<RequiredJiraPermission>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_jira_permissions_match_checked_ones() {
        let page = include_str!("../../../docs/permissions.md");
        for (account, list) in [
            ("reader", READER.as_slice()),
            ("writer", WRITER.as_slice()),
            ("reader, not needed", READER_NEEDS_NOT.as_slice()),
            ("writer, not needed", WRITER_NEEDS_NOT.as_slice()),
        ] {
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

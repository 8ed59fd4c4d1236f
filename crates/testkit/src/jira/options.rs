//! How the stand-in starts.

use super::JiraKind;

/// The group that every person of the stand-in is in.
pub const USERS: &str = "journeyman-users";

/// How to start a [`super::FakeJira`].
#[derive(Debug, Clone)]
pub struct JiraOptions {
    /// The workflow's statuses in order (name, category key `new`, `indeterminate` or `done`); new tickets start in the first.
    pub statuses: Vec<(String, String)>,
    /// The allowed moves (from, to); empty: every status leads to every other.
    pub transitions: Vec<(String, String)>,
    /// Keys of the projects that exist from the start.
    pub projects: Vec<String>,
    /// Keys of the projects that are service desks; customers read their comments unless a property says otherwise.
    pub service_projects: Vec<String>,
    /// The workflow's transitions by name, offered in this order from everywhere; empty: each is named as the status that
    /// it leads to and asks for nothing.
    pub named: Vec<JiraTransition>,
    /// The groups of every person who is in none of their own.
    pub groups: Vec<String>,
    /// Which Jira it is.
    pub kind: JiraKind,
    /// The base of the URLs in its answers, where something before it has another address.
    pub public_url: Option<String>,
}

/// A transition of the workflow.
#[derive(Debug, Clone)]
pub struct JiraTransition {
    /// Its name.
    pub name: String,
    /// The status that it leads to.
    pub to: String,
    /// Fields of its screen that must be filled in, e.g. `Resolution`.
    pub asks_for: Vec<String>,
}

impl Default for JiraOptions {
    fn default() -> Self {
        let statuses = [
            ("To Do", "new"),
            ("Ready for Agent", "new"),
            ("In Progress", "indeterminate"),
            ("In Review", "indeterminate"),
            ("Done", "done"),
        ];
        Self {
            statuses: statuses
                .iter()
                .map(|(name, category)| ((*name).to_owned(), (*category).to_owned()))
                .collect(),
            transitions: Vec::new(),
            projects: ["ENG", "OPS"].map(str::to_owned).to_vec(),
            service_projects: Vec::new(),
            named: Vec::new(),
            groups: vec![USERS.to_owned()],
            kind: JiraKind::Cloud,
            public_url: None,
        }
    }
}

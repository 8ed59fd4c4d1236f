//! Options of the stand-in.

use super::JiraKind;

/// Group of every user of the stand-in.
pub const USERS: &str = "journeyman-users";

/// Options of a [`super::FakeJira`].
#[derive(Debug, Clone)]
pub struct JiraOptions {
    /// Statuses of the workflow in order: name and category key (`new`, `indeterminate` or `done`). New
    /// tickets start in the first.
    pub statuses: Vec<(String, String)>,
    /// Allowed transitions (from, to). Empty allows every transition.
    pub transitions: Vec<(String, String)>,
    /// Keys of the projects that exist from the start.
    pub projects: Vec<String>,
    /// Keys of the service desk projects. Customers read comments there unless a property marks them as
    /// internal.
    pub service_projects: Vec<String>,
    /// Named transitions, offered in this order from every status. If empty, each transition has the name of
    /// its target and no required fields.
    pub named: Vec<JiraTransition>,
    /// Common groups, which every user without explicit groups is a member of.
    pub groups: Vec<String>,
    /// Product and release to imitate.
    pub kind: JiraKind,
    /// Base URL in answers, for a stand-in behind another address.
    pub public_url: Option<String>,
}

/// Transition of the workflow.
#[derive(Debug, Clone)]
pub struct JiraTransition {
    /// Name on the button.
    pub name: String,
    /// Name of the target status.
    pub to: String,
    /// Required fields of its screen, such as `Resolution`.
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

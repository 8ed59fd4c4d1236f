//! Sections of the rules with their defaults, and the structure of the repository.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    health::rules::BaseUpdateRule,
    identity::instance::InstanceName,
    journal::record_format::{is_default, is_true},
    rules::host::HostPattern,
    text::characters::quote_shell_word,
};

/// Location of the repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LocationRules {
    /// The local folder that contains it, a name below `[folder]` in the settings; absent: it is on GitHub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<InstanceName>,
    /// The GitHub server that hosts it, a name below `[github]` in the settings; absent: the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceName>,
    /// Account or organization on GitHub.
    pub owner: String,
    /// Name without the owner.
    pub name: String,
    /// The branch that work starts from.
    pub default_branch: String,
    /// The branch that pull requests target; empty: the default branch.
    pub pr_target_branch: String,
}

impl Default for LocationRules {
    fn default() -> Self {
        Self {
            folder: None,
            instance: None,
            owner: String::new(),
            name: String::new(),
            default_branch: "main".to_owned(),
            pr_target_branch: String::new(),
        }
    }
}

/// Handling of files whose content is in Git LFS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LfsRule {
    /// The workspace has their pointers.
    #[default]
    None,
    /// The workspace has their contents, for reading.
    Read,
}

/// Content of the repository that its commits refer to without containing it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExternalContentRules {
    /// Files in Git LFS.
    pub lfs: LfsRule,
}

/// Rules for branch names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BranchingRules {
    /// Pattern with the placeholders `{type}`, `{ticket_key}` and `{description}`.
    pub pattern: String,
    /// Map from the kind of work (`feature`, `bugfix`, `refactor`) to the `{type}` of branches, commits and
    /// titles.
    pub types: BTreeMap<String, String>,
}

impl Default for BranchingRules {
    fn default() -> Self {
        let types = [("feature", "feat"), ("bugfix", "fix"), ("refactor", "refactor")];
        Self {
            pattern: "{type}/{ticket_key}-{description}".to_owned(),
            types: types
                .map(|(kind, short)| (kind.to_owned(), short.to_owned()))
                .into(),
        }
    }
}

/// Rules for pull requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PullRequestRules {
    /// Pattern with the placeholders `{type}`, `{scope}`, `{description}` and `{ticket_key}`.
    pub title_pattern: String,
    /// Path of the template in the repository. The model receives its text.
    pub template_path: String,
    /// The login whose requested review starts a review by Journeyman; empty: none does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reviewer: String,
    /// True when Journeyman also reviews its own ready pull requests: it requests the review of `reviewer`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub self_review: bool,
    /// Logins that are asked to review each ready pull request of Journeyman, in addition to its code owners.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<String>,
    /// True when the owners in the CODEOWNERS file are asked, too, if GitHub does not ask them.
    #[serde(skip_serializing_if = "is_default")]
    pub code_owners: bool,
    /// Maximum authors of touched lines who are asked if there is no other reviewer, at most 5; 0: none.
    pub touched_authors: usize,
    /// Labels of each pull request of Journeyman.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// True when Journeyman resolves conflicts of its pull requests with their base branch.
    #[serde(skip_serializing_if = "is_true")]
    pub resolve_conflicts: bool,
    /// Maximum number of resolutions per pull request, from 1 to 20.
    #[serde(skip_serializing_if = "is_usual_resolutions")]
    pub resolutions_per_pull_request: u32,
    /// Condition under which Journeyman brings its pull request up to date with the base branch.
    #[serde(skip_serializing_if = "is_default")]
    pub update_base: BaseUpdateRule,
}

const RESOLUTIONS_PER_PULL_REQUEST: u32 = 6;

const fn is_usual_resolutions(value: &u32) -> bool {
    *value == RESOLUTIONS_PER_PULL_REQUEST
}

impl Default for PullRequestRules {
    fn default() -> Self {
        Self {
            title_pattern: "{type}({scope}): {description} ({ticket_key})".to_owned(),
            template_path: ".github/PULL_REQUEST_TEMPLATE.md".to_owned(),
            reviewer: String::new(),
            self_review: false,
            reviewers: Vec::new(),
            code_owners: false,
            touched_authors: 1,
            labels: Vec::new(),
            resolve_conflicts: true,
            resolutions_per_pull_request: RESOLUTIONS_PER_PULL_REQUEST,
            update_base: BaseUpdateRule::default(),
        }
    }
}

/// Conditions under which Journeyman skips a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkipRules {
    /// Journeyman skips a ticket with this phrase in its text or a comment; empty: disabled.
    pub comment_phrase: String,
    /// Journeyman skips a ticket with one of these labels.
    pub labels: Vec<String>,
}

impl Default for SkipRules {
    fn default() -> Self {
        Self {
            comment_phrase: "[AGENT-SKIP]".to_owned(),
            labels: vec!["skip-dispatch".to_owned()],
        }
    }
}

/// Issues of the repository on GitHub that request work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IssueRules {
    /// The login that requests work by an assignment; empty: no assignment requests work.
    pub assignee: String,
    /// Labels that request work when a person adds them to an issue.
    pub labels: Vec<String>,
    /// Maximum number of issues that a plan may open, at most 10; 0: none.
    #[serde(skip_serializing_if = "is_default")]
    pub most_planned: usize,
}

impl IssueRules {
    /// Returns true when no issue requests work.
    pub fn is_empty(&self) -> bool {
        self.assignee.is_empty() && self.labels.is_empty()
    }

    /// Returns true when an assignment to the login requests work. GitHub compares logins without case.
    pub fn is_assignee(&self, login: &str) -> bool {
        !self.assignee.is_empty() && self.assignee.eq_ignore_ascii_case(login)
    }

    /// Returns true when the label requests work. GitHub compares labels without case.
    pub fn is_label(&self, label: &str) -> bool {
        self.labels
            .iter()
            .any(|known| known.to_lowercase() == label.to_lowercase())
    }
}

/// Discussions of the repository on GitHub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiscussionRules {
    /// True when people can address Journeyman there by a mention or a command.
    pub enabled: bool,
    /// True when a new discussion of an author with write permission is researched without a request, if
    /// discussions are enabled.
    pub research: bool,
    /// Names of the categories in which Journeyman takes part; empty: all.
    pub categories: Vec<String>,
    /// Maximum number of researched questions with a separate thread, at most 10; 0: all answers are in one
    /// comment.
    #[serde(skip_serializing_if = "DiscussionRules::is_usual")]
    pub threads: usize,
}

impl Default for DiscussionRules {
    fn default() -> Self {
        Self {
            enabled: false,
            research: true,
            categories: Vec::new(),
            threads: Self::THREADS,
        }
    }
}

impl DiscussionRules {
    const THREADS: usize = 5;

    const fn is_usual(threads: &usize) -> bool {
        *threads == Self::THREADS
    }

    /// Returns true when Journeyman takes part in discussions of this category. Letter case does not matter,
    /// because people write the name in YAML.
    pub fn allow(&self, category: &str) -> bool {
        let is_it = |known: &String| known.to_lowercase() == category.to_lowercase();
        self.enabled && (self.categories.is_empty() || self.categories.iter().any(is_it))
    }
}

/// Rules for the execution of commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutorRules {
    /// The pool of executors, a key of the planner's `pools` setting.
    pub pool: String,
    /// Commands that run once after each checkout.
    pub setup: Vec<String>,
    /// Names of programs that the work needs. A run ends before its first model call when the pool lacks one.
    pub programs: Vec<String>,
    // Commands of the model have no network at all, so the list only concerns the setup, which the rules
    // define.
    /// Hosts that the setup commands can reach through the egress proxy. All other commands have no network.
    pub network: Vec<HostPattern>,
}

impl Default for ExecutorRules {
    fn default() -> Self {
        Self {
            pool: "default".to_owned(),
            setup: Vec::new(),
            programs: Vec::new(),
            network: Vec::new(),
        }
    }
}

/// dbt projects, which the prompt contains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DbtRules {
    /// True when the repository uses dbt.
    pub enabled: bool,
    /// The projects of the repository.
    pub projects: Vec<DbtProject>,
}

impl DbtRules {
    /// Returns the commands that compile every project.
    pub fn compile(&self) -> Vec<String> {
        let in_folder = |project: &DbtProject| match project.path.as_str() {
            "" | "." => "dbt compile".to_owned(),
            path => format!("dbt compile --project-dir {}", quote_shell_word(path)),
        };
        if self.projects.is_empty() {
            vec!["dbt compile".to_owned()]
        } else {
            self.projects.iter().map(in_folder).collect()
        }
    }
}

/// One dbt project of the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DbtProject {
    /// Folder of the project, relative to the root.
    pub path: String,
    /// Path of its manifest, relative to the folder.
    pub manifest_path: String,
}

/// A part of the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModuleRules {
    /// Name of the module for people and the model.
    pub name: String,
    /// Folders and patterns relative to the root, such as `services/*/api` or `**/*.proto`.
    pub paths: Vec<String>,
    /// Description of the contents, which the prompt contains.
    pub description: String,
    /// Kinds of tickets that may change it, by their names in the tracker; empty: all.
    pub kinds: Vec<String>,
    /// Commands that check a change of the module; at most 5.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// Logins of people who review a change of the module where the repository has no CODEOWNERS file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<String>,
}

#[cfg(test)]
mod tests {
    use crate::{LfsRule, RepositoryRules};

    #[test]
    fn lfs_is_read_by_rule() {
        let parse = |json: &str| serde_json::from_str::<RepositoryRules>(json).unwrap();
        assert!(!parse("{}").reads_lfs());
        assert!(!parse(r#"{"repository": {"lfs": "none"}}"#).reads_lfs());
        let read = parse(r#"{"repository": {"lfs": "read"}}"#);
        assert!(read.reads_lfs() && read.repository.lfs == LfsRule::Read);
        let folder = r#"{"repo": {"folder": "here"}, "repository": {"lfs": "read"}}"#;
        assert!(!parse(folder).reads_lfs(), "a folder has no server");
        let plain = serde_json::to_value(RepositoryRules::default()).unwrap();
        assert!(plain.get("repository").is_none(), "older releases read it");
        assert!(serde_json::from_str::<RepositoryRules>(r#"{"repository": {"lfs": "write"}}"#).is_err());
    }
}

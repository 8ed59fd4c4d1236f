//! The sections of the rules, with what holds when a key is absent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{host::HostPattern, instance::Instance};

/// The repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RepoRules {
    /// The local folder that it is in, a name below `[folder]` in the settings; absent: it is on GitHub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<Instance>,
    /// The GitHub server that it lives on, a name below `[github]` in the settings; absent: the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
    /// Account or organisation on GitHub.
    pub owner: String,
    /// Name without the owner.
    pub name: String,
    /// The branch that work starts from.
    pub default_branch: String,
    /// The branch that pull requests target; empty: the default branch.
    pub pr_target_branch: String,
}

impl Default for RepoRules {
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

/// Branch names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BranchingRules {
    /// Placeholders `{type}`, `{ticket_key}` and `{description}`.
    pub pattern: String,
    /// Kind of work (`feature`, `bugfix`, `refactor`) to the `{type}` of branches, commits and titles.
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

/// Pull requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PullRequestRules {
    /// Placeholders `{type}`, `{scope}`, `{description}` and `{ticket_key}`.
    pub title_pattern: String,
    /// The template in the repository, shown to the model.
    pub template_path: String,
    /// The login whose requested review asks for a review of a pull request; empty: none does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reviewer: String,
    /// Whether each pull request of ours that is ready is reviewed by ourselves too: `reviewer` is asked for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub self_review: bool,
    /// Logins that are asked for a review of each pull request of ours that is ready, beside its code owners.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<String>,
    /// Whether the owners of the changed files are asked too, by the file CODEOWNERS, where GitHub does not ask them.
    #[serde(skip_serializing_if = "is_false")]
    pub code_owners: bool,
    /// How many authors of the lines that a pull request touches are asked where nobody else is, at most 5; 0: none.
    pub touched_authors: usize,
    /// Labels of each pull request of ours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
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
        }
    }
}

/// When to leave a ticket alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkipRules {
    /// A ticket with this phrase in its text or a comment is left alone; empty: never.
    pub comment_phrase: String,
    /// A ticket with one of these labels is left alone.
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

/// The issues of the repository on GitHub that ask for work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IssueRules {
    /// The login that asks for work when an issue is assigned to it; empty: no assignment does.
    pub assignee: String,
    /// Labels that ask for work when they are put on an issue.
    pub labels: Vec<String>,
    /// How many issues a plan may open, at most 10; 0: none.
    #[serde(skip_serializing_if = "is_zero")]
    pub most_planned: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl IssueRules {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// True when no issue asks for work.
    pub fn is_empty(&self) -> bool {
        self.assignee.is_empty() && self.labels.is_empty()
    }

    /// Whether it is the login that issues are assigned to. GitHub compares logins without case.
    pub fn is_assignee(&self, login: &str) -> bool {
        !self.assignee.is_empty() && self.assignee.eq_ignore_ascii_case(login)
    }

    /// Whether the label asks for work. GitHub compares labels without case.
    pub fn is_label(&self, label: &str) -> bool {
        self.labels
            .iter()
            .any(|known| known.to_lowercase() == label.to_lowercase())
    }
}

/// The discussions of the repository on GitHub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiscussionRules {
    /// Whether people can ask us there, by our name or a command.
    pub enabled: bool,
    /// Whether a new discussion of somebody who may write is researched without being asked, where we are enabled.
    pub research: bool,
    /// Names of the categories that we take part in; empty: all.
    pub categories: Vec<String>,
    /// How many of the questions that a research finds get a thread of their own, at most 10; 0: it is one comment.
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

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
    const fn is_usual(threads: &usize) -> bool {
        *threads == Self::THREADS
    }

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether we take part in discussions of this category. People write its name; case does not matter.
    pub fn allow(&self, category: &str) -> bool {
        let is_it = |known: &String| known.to_lowercase() == category.to_lowercase();
        self.enabled && (self.categories.is_empty() || self.categories.iter().any(is_it))
    }
}

/// Where and how commands run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutorRules {
    /// The pool of executors, a key of the planner's `pools` setting.
    pub pool: String,
    /// Commands run once after each checkout.
    pub setup: Vec<String>,
    /// Programs that the work needs, by name; a run ends before its first model call when the pool lacks one.
    pub programs: Vec<String>,
    /// Hosts that the setup commands may reach, through the egress proxy; all other commands reach none.
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

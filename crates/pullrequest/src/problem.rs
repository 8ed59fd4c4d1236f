//! What can go wrong, as callers read it.

use serde::{Deserialize, Serialize};

/// The types of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The request cannot be carried out as it is.
    ValidationError,
    /// The branch is neither here nor at GitHub.
    BranchNotFound,
    /// GitHub did not open the pull request.
    PrCreationFailed,
    /// An issue is named, and the settings have no Jira.
    JiraNotConfigured,
    /// Jira does not take the credentials.
    JiraAuthenticationFailed,
    /// Jira does not show the issue.
    JiraIssueNotFound,
    /// Neither link nor comment could be written.
    JiraLinkFailed,
    /// The issue stays in its status.
    JiraTransitionFailed,
    /// More than one transition matches equally well.
    JiraTransitionAmbiguous,
    /// The pull request stays a draft.
    MarkReadyFailed,
    /// The branch did not get to GitHub.
    GitPushFailed,
    /// None of the others.
    UnknownError,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::ValidationError,
        Self::BranchNotFound,
        Self::PrCreationFailed,
        Self::JiraNotConfigured,
        Self::JiraAuthenticationFailed,
        Self::JiraIssueNotFound,
        Self::JiraLinkFailed,
        Self::JiraTransitionFailed,
        Self::JiraTransitionAmbiguous,
        Self::MarkReadyFailed,
        Self::GitPushFailed,
        Self::UnknownError,
    ];

    /// How often what failed is tried again before it is reported, while the trouble is one that may pass.
    pub const fn retries(self) -> u32 {
        match self {
            Self::PrCreationFailed | Self::GitPushFailed => 3,
            Self::JiraLinkFailed | Self::MarkReadyFailed => 2,
            Self::ValidationError
            | Self::BranchNotFound
            | Self::JiraNotConfigured
            | Self::JiraAuthenticationFailed
            | Self::JiraIssueNotFound
            | Self::JiraTransitionFailed
            | Self::JiraTransitionAmbiguous
            | Self::UnknownError => 0,
        }
    }
}

/// One error of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// For people.
    pub message: String,
    /// What it is about.
    #[serde(default)]
    pub context: Context,
}

/// What an error is about. Absent is what does not apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Context {
    /// The field of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What the field holds, when it is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<serde_json::Value>,
    /// The branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The issue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jira_key: Option<String>,
    /// The transitions to choose from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_transitions: Option<Vec<String>>,
    /// What git, GitHub or Jira said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_output: Option<String>,
    /// How often it was tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
}

impl Problem {
    /// A problem that is about nothing yet.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            context: Context::default(),
        }
    }

    /// About a field of the request.
    #[must_use]
    pub fn about_field(mut self, field: &str) -> Self {
        self.context.field = Some(field.to_owned());
        self
    }

    /// About a branch.
    #[must_use]
    pub fn about_branch(mut self, branch: &str) -> Self {
        self.context.branch = Some(branch.to_owned());
        self
    }

    /// About an issue.
    #[must_use]
    pub fn about_issue(mut self, key: &str) -> Self {
        self.context.jira_key = Some(key.to_owned());
        self
    }

    /// With what was said.
    #[must_use]
    pub fn saying(mut self, output: impl Into<String>) -> Self {
        self.context.error_output = Some(output.into());
        self
    }

    /// With the transitions to choose from.
    #[must_use]
    pub fn offering(mut self, transitions: Vec<String>) -> Self {
        self.context.available_transitions = Some(transitions);
        self
    }

    /// After so many retries.
    #[must_use]
    pub fn after(mut self, retries: u32) -> Self {
        self.context.retries = (retries > 0).then_some(retries);
        self
    }
}

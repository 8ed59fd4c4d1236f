//! Problems of a call, as callers receive them.

use serde::{Deserialize, Serialize};
use strum::VariantArray;

/// Type of a problem, with the names of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The request is not valid.
    ValidationError,
    /// Neither the working directory nor GitHub has the branch.
    BranchNotFound,
    /// GitHub did not open the pull request.
    PrCreationFailed,
    /// The request names an issue, and the settings have no Jira.
    JiraNotConfigured,
    /// Jira refuses the credentials.
    JiraAuthenticationFailed,
    /// Jira does not know the issue, or the account cannot see it.
    JiraIssueNotFound,
    /// Jira accepted neither the link nor the comment.
    JiraLinkFailed,
    /// The issue stays in its status.
    JiraTransitionFailed,
    /// More than one transition matches equally well.
    JiraTransitionAmbiguous,
    /// The pull request stays a draft.
    MarkReadyFailed,
    /// The push of the branch failed.
    GitPushFailed,
    /// Any other failure.
    UnknownError,
}

impl ProblemKind {
    /// All types, in the order of the protocol.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Number of retries of a failed operation before its report, for failures that may be temporary.
    pub const fn retries(self) -> u32 {
        match self {
            // docs/pull-requests.md lists these numbers for callers.
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

/// One problem of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallProblem {
    /// Type of the problem.
    #[serde(rename = "type")]
    pub kind: ProblemKind,
    /// Explanation for users.
    pub message: String,
    /// Subject of the problem.
    #[serde(default)]
    pub context: ProblemContext,
}

/// Subject of a problem. Fields that do not apply are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProblemContext {
    /// Field of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Value of the field, if it is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<serde_json::Value>,
    /// Name of the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Key of the issue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jira_key: Option<String>,
    /// Names of the transitions to choose from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_transitions: Option<Vec<String>>,
    /// Message of git, GitHub or Jira.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_output: Option<String>,
    /// Number of retries before the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
}

impl CallProblem {
    /// Problem without a context.
    pub fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            context: ProblemContext::default(),
        }
    }

    /// Sets the field of the request.
    #[must_use]
    pub fn about_field(mut self, field: &str) -> Self {
        self.context.field = Some(field.to_owned());
        self
    }

    /// Sets the branch.
    #[must_use]
    pub fn about_branch(mut self, branch: &str) -> Self {
        self.context.branch = Some(branch.to_owned());
        self
    }

    /// Sets the key of the issue.
    #[must_use]
    pub fn about_issue(mut self, key: &str) -> Self {
        self.context.jira_key = Some(key.to_owned());
        self
    }

    /// Sets the message of git, GitHub or Jira.
    #[must_use]
    pub fn with_error_output(mut self, output: impl Into<String>) -> Self {
        self.context.error_output = Some(output.into());
        self
    }

    /// Sets the transitions to choose from.
    #[must_use]
    pub fn offering(mut self, transitions: Vec<String>) -> Self {
        self.context.available_transitions = Some(transitions);
        self
    }

    /// Sets the number of retries; 0 stays absent.
    #[must_use]
    pub fn after(mut self, retries: u32) -> Self {
        self.context.retries = (retries > 0).then_some(retries);
        self
    }
}

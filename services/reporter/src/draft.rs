//! Content of a new pull request.

use domain::{ChangeDescription, RepositoryName};

/// A draft pull request to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PullRequestDraft {
    /// Repository of the pull request.
    pub(crate) repository: RepositoryName,
    /// Head branch, without `refs/heads/`.
    pub(crate) branch: String,
    /// Target branch, without `refs/heads/`.
    pub(crate) base_branch: String,
    /// Title by the model.
    pub(crate) title: String,
    /// Markdown by the model, for pull requests without a description.
    pub(crate) body: String,
    /// Structured description of the change, with its evidence.
    pub(crate) description: Option<Box<ChangeDescription>>,
}

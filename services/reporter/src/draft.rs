//! What a pull request is opened with.

use domain::{Description, RepositoryName};

/// A draft pull request to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    /// Where.
    pub(crate) repository: RepositoryName,
    /// Head branch.
    pub(crate) branch: String,
    /// Target branch.
    pub(crate) base_branch: String,
    /// The model's title.
    pub(crate) title: String,
    /// The model's Markdown, where there is no description.
    pub(crate) body: String,
    /// What is known of the change.
    pub(crate) description: Option<Box<Description>>,
}

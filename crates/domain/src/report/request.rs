//! Common properties of all requests to the reporter.

use super::BranchPush;
use crate::{CommitId, RepositoryName};

/// Properties that each request to the reporter provides.
pub(super) trait RequestProperties {
    /// The repository whose rules govern it; absent: the ticket's.
    fn repository(&self) -> Option<&RepositoryName> {
        None
    }

    /// The commit or plan that a person is asked to decide about.
    fn asks_about(&self) -> Option<&CommitId> {
        None
    }

    /// The push that it contains, with the pack of the commits.
    fn push(&self) -> Option<&BranchPush> {
        None
    }

    /// Returns true when its outcome is the result of a tool call of the model.
    fn answers_call(&self) -> bool {
        false
    }

    /// Summary on one line, for readers of journals.
    fn summary(&self) -> String;
}

//! What every request to the reporter says of itself.

use crate::{CommitId, RepositoryName};

/// What every request says of itself.
pub(super) trait Request {
    /// The repository whose rules govern it; absent: the ticket's.
    fn repository(&self) -> Option<&RepositoryName> {
        None
    }

    /// The commit or plan that a person is asked to decide on.
    fn asks_about(&self) -> Option<&CommitId> {
        None
    }

    /// Whether its outcome is the result of a tool call of the model's.
    fn answers_call(&self) -> bool {
        false
    }

    /// What is asked for, on one line, for the people who read journals.
    fn summary(&self) -> String;
}

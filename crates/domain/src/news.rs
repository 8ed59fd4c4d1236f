//! News: events on a ticket while its runs are active.

use serde::{Deserialize, Serialize};

use crate::{PullRequestRef, RepositoryName, TicketComment};

/// An event that active runs of a ticket accept as input. Without an active run it has no effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "news", rename_all = "snake_case")]
pub enum TicketNews {
    /// A person wrote a comment.
    Comment {
        /// The comment, sanitized like the ticket's text.
        comment: TicketComment,
        /// Our pull request that it was written on; absent: it was written on the ticket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pull_request: Option<PullRequestRef>,
    },
}

impl TicketNews {
    /// Returns the repository that it is about; absent: it may concern all work of the ticket.
    pub fn repository(&self) -> Option<&RepositoryName> {
        match self {
            Self::Comment { pull_request, .. } => {
                pull_request.as_ref().map(|pull_request| &pull_request.repository)
            }
        }
    }
}

//! News: what is said about a ticket while runs are under way.

use serde::{Deserialize, Serialize};

use crate::{PullRequestRef, RepositoryName, TicketComment};

/// Something that live runs of a ticket take in as input. Without a live run nothing follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "news", rename_all = "snake_case")]
pub enum News {
    /// Somebody commented.
    Comment {
        /// What was said, sanitised like the ticket's text.
        comment: TicketComment,
        /// Our pull request that it was said on; absent: it was said on the ticket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pull_request: Option<PullRequestRef>,
    },
}

impl News {
    /// The repository that it is about; absent: it may concern all of the ticket's work.
    pub fn repository(&self) -> Option<&RepositoryName> {
        match self {
            Self::Comment { pull_request, .. } => {
                pull_request.as_ref().map(|pull_request| &pull_request.repository)
            }
        }
    }
}

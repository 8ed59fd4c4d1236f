//! What a review of a pull request begins with.

use domain::{ChangedFile, CommitId};
use serde::Deserialize;

use super::{instant, people::WireUser};
use crate::ReviewRequest;

#[derive(Deserialize)]
pub(crate) struct WireFile {
    filename: String,
    /// Absent for binary files and very large changes.
    patch: Option<String>,
}

impl From<WireFile> for ChangedFile {
    fn from(wire: WireFile) -> Self {
        Self {
            path: wire.filename,
            patch: wire.patch.unwrap_or_default(),
        }
    }
}

/// What differs between two commits, as far as it is read.
#[derive(Deserialize)]
pub(crate) struct WireComparison {
    /// The 300 first.
    #[serde(default)]
    pub(crate) files: Vec<WireFile>,
}

/// A commit of a pull request.
#[derive(Deserialize)]
pub(crate) struct WireCommit {
    pub(crate) sha: CommitId,
}

/// An event of an issue or pull request.
#[derive(Deserialize)]
pub(crate) struct WireIssueEvent {
    id: u64,
    event: String,
    actor: Option<WireUser>,
    created_at: Option<String>,
    requested_reviewer: Option<WireUser>,
}

impl WireIssueEvent {
    /// Absent for other events than a request for the review of a person.
    pub(crate) fn into_request(self) -> Option<ReviewRequest> {
        if self.event != "review_requested" {
            return None;
        }
        Some(ReviewRequest {
            id: self.id,
            by: self.actor.map(WireUser::into_user),
            reviewer: self.requested_reviewer?.login,
            at: instant(self.created_at.as_deref()).unwrap_or_default(),
        })
    }
}

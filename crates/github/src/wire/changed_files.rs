//! JSON of changed files, commits and review requests.

use domain::{CommitId, PullRequestFile};
use serde::Deserialize;

use super::{
    parse_instant,
    people::{WireTeam, WireUser},
};
use crate::ReviewRequest;

#[derive(Deserialize)]
pub(crate) struct WireFile {
    filename: String,
    /// Absent for binary files and very large changes.
    patch: Option<String>,
}

impl From<WireFile> for PullRequestFile {
    fn from(wire: WireFile) -> Self {
        Self {
            path: wire.filename,
            patch: wire.patch.unwrap_or_default(),
        }
    }
}

/// Comparison of two commits, its files only.
#[derive(Deserialize)]
pub(crate) struct WireComparison {
    /// First 300 changed files.
    pub(crate) files: Vec<WireFile>,
}

/// Commit of a pull request.
#[derive(Deserialize)]
pub(crate) struct WireCommit {
    pub(crate) sha: CommitId,
}

/// Event of an issue or pull request.
#[derive(Deserialize)]
pub(crate) struct WireIssueEvent {
    id: u64,
    event: String,
    actor: Option<WireUser>,
    created_at: Option<String>,
    requested_reviewer: Option<WireUser>,
    requested_team: Option<WireTeam>,
}

impl WireIssueEvent {
    /// Converts a request for the review of a user or of a team of the organization; `None` for other events.
    pub(crate) fn into_request(self, organization: &str) -> Option<ReviewRequest> {
        if self.event != "review_requested" {
            return None;
        }
        let user = self.requested_reviewer.map(|user| user.login);
        let team = self.requested_team.and_then(|team| team.into_name(organization));
        Some(ReviewRequest {
            id: self.id,
            by: self.actor.map(WireUser::into_user),
            reviewer: user.or(team)?,
            at: parse_instant(self.created_at.as_deref()).unwrap_or_default(),
        })
    }
}

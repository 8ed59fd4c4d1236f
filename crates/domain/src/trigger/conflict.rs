//! Conflict of our pull request with its base branch.

use serde::{Deserialize, Serialize};

use crate::{identity::commit::CommitId, trigger::pull_request::PullRequestRef};

/// Conflict of our pull request with its base branch: GitHub cannot merge the two commits.
// GitHub names no files of a conflict. The executor finds them when it merges the commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictedBase {
    /// The pull request that cannot be merged.
    pub pull_request: PullRequestRef,
    /// Its head at the time of the conflict.
    pub head: CommitId,
    /// The commit of the base branch at that time.
    pub base: CommitId,
    /// Name of the base branch, without `refs/heads/`.
    pub base_branch: String,
    /// Reason why Journeyman does not resolve the conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unresolved: Option<ConflictEnd>,
    /// Logins of the people who are asked to resolve the conflict; empty: no login is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
}

/// Reason why a conflict is left to people before any work on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ConflictEnd {
    /// The rules disable resolutions.
    Off,
    /// The pull request targets another branch than the rules.
    OtherBase,
    /// The resolutions of one head reached their limit.
    PerHead,
    /// The resolutions of the pull request reached their limit.
    PerPullRequest,
    /// The request of the ticket is no longer stored.
    Forgotten,
}

impl ConflictedBase {
    /// Creates a conflict that no reason leaves to people.
    pub const fn new(
        pull_request: PullRequestRef,
        head: CommitId,
        base: CommitId,
        base_branch: String,
    ) -> Self {
        Self {
            pull_request,
            head,
            base,
            base_branch,
            unresolved: None,
            asked: Vec::new(),
        }
    }

    /// Returns the reason why a person has to act; absent: no person has to.
    pub fn calls(&self) -> Option<ConflictEnd> {
        self.unresolved.filter(|why| why.calls_people())
    }
}

impl ConflictEnd {
    /// Returns true when a person has to act who may rely on Journeyman. A team that disabled resolutions
    /// resolves conflicts anyway.
    pub const fn calls_people(self) -> bool {
        match self {
            Self::PerHead | Self::PerPullRequest | Self::Forgotten => true,
            Self::Off | Self::OtherBase => false,
        }
    }

    /// The name in the API and in journals.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

//! Update of our pull request with new commits of its base branch.

use serde::{Deserialize, Serialize};

use crate::{identity::commit::CommitId, trigger::pull_request::PullRequestRef};

/// Pull request of ours whose head lacks commits of its base branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutdatedBase {
    /// The pull request that is behind.
    pub pull_request: PullRequestRef,
    /// Its head at that time. The update is refused for another head.
    pub head: CommitId,
    /// Name of the base branch, without `refs/heads/`.
    pub base_branch: String,
    /// Way of the update.
    #[serde(default, skip_serializing_if = "UpdateWay::is_merge")]
    pub way: UpdateWay,
}

/// Way in which a head gets the new commits of its base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateWay {
    /// A merge commit on the head branch. All commits stay.
    #[default]
    Merge,
    /// New copies of the commits on top of the base, where the base accepts no merge commit.
    Rebase,
}

impl UpdateWay {
    fn is_merge(&self) -> bool {
        *self == Self::Merge
    }
}

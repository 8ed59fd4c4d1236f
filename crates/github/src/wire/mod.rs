//! GitHub's JSON, as far as this crate reads it, with conversions into the model; one file for each kind of
//! answer.

mod changed_files;
mod checks;
mod discussions;
mod health;
mod issues;
mod open_heads;
mod people;
mod pulls;
mod remarks;
mod repository;

pub(crate) use changed_files::{WireCommit, WireComparison, WireFile, WireIssueEvent};
#[cfg(test)]
pub(crate) use checks::WireCommitStatus;
pub(crate) use checks::{WireCheckRun, WireCheckRuns, WireCombinedStatus, WireCommitRuns, WireWorkflowRun};
pub(crate) use discussions::{WireDiscussionData, WireDiscussionRepository};
pub(crate) use health::{
    WireAuthoredCommit, WireDistance, WireQueueData, WireReviewThread, WireVerifiedCommit,
};
pub(crate) use issues::{WireIssueData, WireIssueStub};
pub(crate) use open_heads::WireOpenHeads;
pub(crate) use people::{WireCollaboratorPermission, WireUser};
pub(crate) use pulls::WirePullRequest;
pub(crate) use remarks::{WireGitHubComment, WireLineComment, WireRemark, WireReview};
pub(crate) use repository::{
    WireBranch, WireBranchRule, WireGitCommit, WireGitObject, WireNamedRef, WireProtectionRule, WireRef,
    WireRepository, WireRepositoryAccess, WireRuleset,
};

use domain::Timestamp;
use serde::Deserialize;

use crate::ConversationLock;

/// Page of a GraphQL list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WirePage<T> {
    page_info: WirePageInfo,
    nodes: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePageInfo {
    has_next_page: bool,
    end_cursor: Option<String>,
}

impl<T> WirePage<T> {
    /// Entries of the page, and the cursor of the next page.
    pub(crate) fn into_parts(self) -> (Vec<T>, Option<String>) {
        let WirePageInfo {
            has_next_page,
            end_cursor,
        } = self.page_info;
        (self.nodes, end_cursor.filter(|_| has_next_page))
    }
}

/// Converts the lock of a conversation. GraphQL writes `TOO_HEATED` where REST writes `too heated`.
fn parse_lock(is_locked: bool, reason: Option<String>) -> Option<ConversationLock> {
    is_locked.then(|| ConversationLock {
        reason: reason.unwrap_or_default().to_ascii_lowercase().replace('_', " "),
    })
}

fn parse_instant(text: Option<&str>) -> Option<Timestamp> {
    text.and_then(Timestamp::parse)
}

//! JSON about the merge queue, threads, signatures and distance of a pull request.

use domain::{CommitId, QueueEntry, QueueRemoval, QueueState, RemovalReason};
use serde::Deserialize;

use super::{WirePage, parse_instant, repository::WireVerification};

/// Distance of a head from its base.
#[derive(Deserialize)]
pub(crate) struct WireDistance {
    /// Number of commits of the base that the head lacks.
    pub(crate) behind_by: u64,
}

/// Commit of a pull request with the check of its signature.
#[derive(Deserialize)]
pub(crate) struct WireVerifiedCommit {
    commit: WireCommitDetails,
}

#[derive(Deserialize)]
struct WireCommitDetails {
    verification: Option<WireVerification>,
}

/// Commit of a pull request with the address of its author.
#[derive(Deserialize)]
pub(crate) struct WireAuthoredCommit {
    commit: WireAuthoredDetails,
}

#[derive(Deserialize)]
struct WireAuthoredDetails {
    author: Option<WireAuthorAddress>,
}

#[derive(Deserialize)]
struct WireAuthorAddress {
    email: Option<String>,
}

impl WireAuthoredCommit {
    /// Address of the author; empty without one.
    pub(crate) fn into_address(self) -> String {
        let author = self.commit.author.and_then(|author| author.email);
        author.unwrap_or_default()
    }
}

impl WireVerifiedCommit {
    /// True when GitHub does not verify the signature, or there is none. A server that reports nothing about signatures
    /// is not a reason.
    pub(crate) fn is_unverified(&self) -> bool {
        self.commit
            .verification
            .as_ref()
            .is_some_and(|verification| !verification.verified)
    }
}

/// Data of the query about the merge queue and the threads.
#[derive(Deserialize)]
pub(crate) struct WireQueueData {
    repository: Option<WireQueueRepository>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireQueueRepository {
    pull_request: Option<WireQueuedPullRequest>,
}

/// Pull request with its queue entry, its last removal and its threads.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireQueuedPullRequest {
    merge_queue_entry: Option<WireQueueEntry>,
    timeline_items: Option<WireNodes<WireQueueRemoval>>,
    commits: Option<WireNodes<WireHeadCommit>>,
    review_threads: Option<WirePage<WireThreadState>>,
}

#[derive(Deserialize)]
struct WireNodes<T> {
    nodes: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireQueueEntry {
    #[serde(default)]
    position: u64,
    enqueued_at: Option<String>,
    head_commit: Option<WireOid>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireQueueRemoval {
    reason: Option<String>,
    created_at: Option<String>,
    before_commit: Option<WireOid>,
}

#[derive(Deserialize)]
struct WireOid {
    oid: CommitId,
}

#[derive(Deserialize)]
struct WireHeadCommit {
    commit: WireCommitDate,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCommitDate {
    committed_date: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireThreadState {
    is_resolved: bool,
}

/// Open threads on a page of review threads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenThreads {
    pub(crate) count: u32,
    /// Cursor of the next page.
    pub(crate) next: Option<String>,
}

impl From<WirePage<WireThreadState>> for OpenThreads {
    fn from(page: WirePage<WireThreadState>) -> Self {
        let (threads, next) = page.into_parts();
        let open = threads.iter().filter(|thread| !thread.is_resolved).count();
        Self {
            count: u32::try_from(open).unwrap_or(u32::MAX),
            next,
        }
    }
}

/// Review thread with its first comment.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireReviewThread {
    id: String,
    is_resolved: bool,
    comments: WireNodes<WireThreadComment>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireThreadComment {
    database_id: Option<u64>,
}

impl WireReviewThread {
    /// True if the thread began with this comment.
    pub(crate) fn is_begun_by(&self, comment: u64) -> bool {
        let first = self.comments.nodes.first();
        first.is_some_and(|first| first.database_id == Some(comment))
    }

    /// GraphQL id of an unresolved thread.
    pub(crate) fn into_open_id(self) -> Option<String> {
        (!self.is_resolved).then_some(self.id)
    }
}

impl WireQueueData {
    /// State of the queue without auto-merge, and the open threads of the page.
    pub(crate) fn into_parts(self) -> (QueueState, Option<OpenThreads>) {
        let Some(pull) = self.repository.and_then(|repository| repository.pull_request) else {
            return (QueueState::default(), None);
        };
        let entry = pull.merge_queue_entry.map(|entry| QueueEntry {
            position: entry.position,
            since: parse_instant(entry.enqueued_at.as_deref()).unwrap_or_default(),
            commit: entry.head_commit.map(|commit| commit.oid),
        });
        let mut commits = pull.commits.into_iter().flat_map(|commits| commits.nodes);
        let head_at = commits
            .next_back()
            .and_then(|head| parse_instant(head.commit.committed_date.as_deref()));
        let mut removals = pull.timeline_items.into_iter().flat_map(|items| items.nodes);
        let removal = removals
            .next_back()
            .and_then(WireQueueRemoval::into_removal)
            // A removal from before the head commit concerns an earlier head.
            .filter(|removal| head_at.is_none_or(|head_at| removal.at >= head_at));
        let queue = QueueState {
            entry,
            removal,
            auto_merge: None,
        };
        (queue, pull.review_threads.map(OpenThreads::from))
    }
}

impl WireQueueRemoval {
    fn into_removal(self) -> Option<QueueRemoval> {
        Some(QueueRemoval {
            reason: parse_removal_reason(self.reason.as_deref().unwrap_or_default())?,
            at: parse_instant(self.created_at.as_deref())?,
            commit: self.before_commit.map(|commit| commit.oid),
        })
    }
}

/// Parses the reason of a removal; `None` after a merge. Webhooks write `CI_FAILURE`, timelines `failed_checks`.
fn parse_removal_reason(reason: &str) -> Option<RemovalReason> {
    let reason = reason.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    if reason == "merge" || has(&["merged"]) {
        return None;
    }
    Some(if has(&["conflict"]) {
        RemovalReason::Conflict
    } else if has(&["check", "ci_", "timeout", "timed_out", "timed out"]) {
        RemovalReason::Checks
    } else if has(&["manual", "dequeue", "user"]) {
        RemovalReason::Person
    } else {
        RemovalReason::Other
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removal_reason_parses_known_words() {
        for (word, reason) in [
            ("CI_FAILURE", Some(RemovalReason::Checks)),
            ("CI_TIMEOUT", Some(RemovalReason::Checks)),
            ("failed_checks", Some(RemovalReason::Checks)),
            ("MERGE_CONFLICT", Some(RemovalReason::Conflict)),
            ("MANUAL", Some(RemovalReason::Person)),
            ("QUEUE_CLEARED", Some(RemovalReason::Other)),
            ("", Some(RemovalReason::Other)),
            ("MERGE", None),
            ("ALREADY_MERGED", None),
        ] {
            assert_eq!(parse_removal_reason(word), reason, "{word}");
        }
    }

    #[test]
    fn removal_before_head_commit_is_left_out() {
        let read = |committed: &str| {
            let data = serde_json::json!({"repository": {"pullRequest": {
                "mergeQueueEntry": null,
                "timelineItems": {"nodes": [{"reason": "CI_FAILURE", "createdAt": "2026-11-21T10:00:00Z",
                    "beforeCommit": {"oid": "c".repeat(40)}}]},
                "commits": {"nodes": [{"commit": {"committedDate": committed}}]},
                "reviewThreads": {"pageInfo": {"hasNextPage": false, "endCursor": "2"},
                    "nodes": [{"isResolved": true}, {"isResolved": false}]},
            }}});
            serde_json::from_value::<WireQueueData>(data)
                .unwrap()
                .into_parts()
        };
        let (queue, open) = read("2026-11-21T09:00:00Z");
        assert_eq!(
            queue.removal.map(|removal| removal.reason),
            Some(RemovalReason::Checks)
        );
        let (count, next) = (1, None);
        assert_eq!(open, Some(OpenThreads { count, next }));
        assert_eq!(read("2026-11-21T11:00:00Z").0, QueueState::default());
    }

    #[test]
    fn missing_pull_request_has_empty_queue() {
        let read = serde_json::from_str::<WireQueueData>(r#"{"repository": null}"#).unwrap();
        assert_eq!(read.into_parts(), (QueueState::default(), None));
    }
}

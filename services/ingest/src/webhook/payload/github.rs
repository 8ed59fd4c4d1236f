//! Payloads of GitHub's webhooks. Only fields that the kinds read are declared.

use domain::{CommitId, RepositoryName, TicketKey};
use serde::Deserialize;

use super::WebhookPayload;
use crate::facts::EventActor;

#[derive(Deserialize)]
pub(crate) struct GithubHookRepository {
    pub(crate) full_name: RepositoryName,
}

#[derive(Deserialize)]
pub(crate) struct CheckRunPayload {
    pub(crate) action: String,
    pub(crate) check_run: CheckRun,
    pub(crate) repository: GithubHookRepository,
}

#[derive(Deserialize)]
pub(crate) struct CheckRun {
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) external_id: Option<String>,
    pub(crate) head_sha: CommitId,
    pub(crate) check_suite: GithubHookSuite,
}

#[derive(Deserialize)]
pub(crate) struct GithubHookSuite {
    pub(crate) head_branch: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct CheckSuitePayload {
    pub(crate) action: String,
    pub(crate) check_suite: CheckSuite,
    pub(crate) repository: GithubHookRepository,
}

#[derive(Deserialize)]
pub(crate) struct CheckSuite {
    pub(crate) head_sha: CommitId,
    pub(crate) head_branch: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct WorkflowRunPayload {
    pub(crate) action: String,
    pub(crate) workflow_run: CheckSuite,
    pub(crate) repository: GithubHookRepository,
}

#[derive(Deserialize)]
pub(crate) struct MergeGroupPayload {
    pub(crate) merge_group: MergeGroup,
    pub(crate) repository: GithubHookRepository,
}

#[derive(Deserialize)]
pub(crate) struct MergeGroup {
    /// Branch of the queue's commit, with `refs/heads/`.
    pub(crate) head_ref: String,
}

#[derive(Deserialize)]
pub(crate) struct StatusPayload {
    pub(crate) sha: CommitId,
    pub(crate) state: String,
    pub(crate) branches: Vec<GithubHookBranch>,
    pub(crate) repository: GithubHookRepository,
}

#[derive(Deserialize)]
pub(crate) struct GithubHookBranch {
    pub(crate) name: String,
}

#[derive(Deserialize)]
pub(crate) struct PullRequestPayload {
    pub(crate) action: String,
    pub(crate) pull_request: PullRequest,
    pub(crate) repository: GithubHookRepository,
    pub(crate) sender: GithubHookUser,
}

#[derive(Deserialize)]
pub(crate) struct PullRequest {
    pub(crate) number: u64,
    #[serde(default)]
    pub(crate) title: String,
    /// Null when it is empty.
    pub(crate) body: Option<String>,
    pub(crate) head: GithubHookHead,
    /// GitHub omits it or sends null in some events.
    pub(crate) merged: Option<bool>,
    pub(crate) merged_by: Option<GithubHookUser>,
    pub(crate) closed_at: Option<String>,
}

/// Change of a conversation's lock, in the webhooks of issues, pull requests and discussions.
#[derive(Deserialize)]
pub(crate) struct LockPayload {
    pub(crate) action: String,
    pub(crate) issue: Option<LockedThread>,
    pub(crate) pull_request: Option<LockedThread>,
    pub(crate) discussion: Option<LockedThread>,
    pub(crate) repository: GithubHookRepository,
}

#[derive(Deserialize)]
pub(crate) struct LockedThread {
    pub(crate) number: u64,
    pub(crate) active_lock_reason: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct GithubHookHead {
    pub(crate) r#ref: String,
    pub(crate) repo: Option<GithubHookRepository>,
}

#[derive(Deserialize)]
pub(crate) struct CommentPayload {
    pub(crate) action: String,
    pub(crate) issue: GithubHookIssue,
    pub(crate) comment: GithubHookComment,
    pub(crate) repository: GithubHookRepository,
}

#[derive(Deserialize)]
pub(crate) struct GithubHookIssue {
    pub(crate) number: u64,
}

#[derive(Deserialize)]
pub(crate) struct IssuePayload {
    pub(crate) action: String,
    pub(crate) issue: GithubHookIssue,
    pub(crate) repository: GithubHookRepository,
}

impl IssuePayload {
    pub(crate) fn ticket(self, hook: &WebhookPayload<'_>) -> TicketKey {
        TicketKey::GitHub {
            repository: hook.repository(self.repository),
            number: self.issue.number,
        }
    }
}

/// Webhook of an issue that may report a move to another place.
#[derive(Deserialize)]
pub(crate) struct IssueMovePayload {
    pub(crate) action: String,
    pub(crate) issue: GithubHookIssue,
    pub(crate) changes: Option<IssueMoveChanges>,
    pub(crate) repository: GithubHookRepository,
    pub(crate) sender: Option<GithubHookUser>,
}

/// Other place of a transferred issue: the new one at its former place, the former one at its new place.
#[derive(Default, Deserialize)]
pub(crate) struct IssueMoveChanges {
    pub(crate) new_issue: Option<GithubHookIssue>,
    pub(crate) new_repository: Option<GithubHookRepository>,
    pub(crate) old_issue: Option<GithubHookIssue>,
    pub(crate) old_repository: Option<GithubHookRepository>,
}

#[derive(Deserialize)]
pub(crate) struct DiscussionPayload {
    pub(crate) action: String,
    pub(crate) discussion: NumberedSubject,
    pub(crate) repository: GithubHookRepository,
}

#[derive(Deserialize)]
pub(crate) struct DiscussionCommentPayload {
    pub(crate) action: String,
    pub(crate) discussion: NumberedSubject,
    pub(crate) comment: GithubHookComment,
    pub(crate) repository: GithubHookRepository,
}

#[derive(Deserialize)]
pub(crate) struct GithubHookComment {
    pub(crate) id: u64,
    /// GraphQL id of the comment.
    #[serde(default)]
    pub(crate) node_id: String,
    pub(crate) body: String,
    /// Null when the account was deleted.
    pub(crate) user: Option<GithubHookUser>,
    pub(crate) created_at: String,
}

#[derive(Deserialize)]
pub(crate) struct GithubHookUser {
    pub(crate) login: String,
    pub(crate) id: Option<u64>,
    /// `User` or `Bot`.
    #[serde(default)]
    pub(crate) r#type: String,
}

impl GithubHookUser {
    /// Actor on a repository.
    pub(crate) fn on(self, repository: &RepositoryName) -> EventActor {
        EventActor::GitHub {
            repository: repository.clone(),
            is_bot: self.r#type == "Bot",
            login: self.login,
            id: self.id,
        }
    }

    /// User of the payload, or `ghost`, GitHub's name for deleted accounts.
    pub(crate) fn or_ghost(user: Option<Self>) -> Self {
        user.unwrap_or_else(|| Self {
            login: "ghost".to_owned(),
            id: None,
            r#type: String::new(),
        })
    }
}

#[derive(Deserialize)]
pub(crate) struct PushPayload {
    pub(crate) r#ref: String,
    /// All zeros when the branch was deleted.
    pub(crate) after: CommitId,
    #[serde(default)]
    pub(crate) deleted: bool,
    pub(crate) repository: GithubHookRepository,
    pub(crate) sender: GithubHookUser,
}

#[derive(Deserialize)]
pub(crate) struct ReviewPayload {
    pub(crate) action: String,
    pub(crate) review: GithubHookReview,
    pub(crate) pull_request: NumberedSubject,
    pub(crate) repository: GithubHookRepository,
}

#[derive(Deserialize)]
pub(crate) struct GithubHookReview {
    pub(crate) id: u64,
    /// Null when the account was deleted.
    pub(crate) user: Option<GithubHookUser>,
}

#[derive(Deserialize)]
pub(crate) struct NumberedSubject {
    pub(crate) number: u64,
}

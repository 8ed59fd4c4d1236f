//! Types of issues and discussions, their comments and events.

use domain::Timestamp;

use crate::{ConversationLock, ETag, GitHubCommentId};

/// Account of a user or program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitHubUser {
    /// Permanent id. A login can pass to another account.
    pub id: Option<u64>,
    /// Login as GitHub shows it; that of an App ends in `[bot]`.
    pub login: String,
    /// True when the account belongs to a program.
    pub is_bot: bool,
}

/// Assignees and labels of an issue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssueAttributes {
    /// Logins of the assignees.
    pub assignees: Vec<String>,
    /// Names of the labels.
    pub labels: Vec<String>,
}

/// Entry of a poll of issues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolledIssue {
    /// Number in its repository.
    pub number: u64,
    /// Title in one line.
    pub title: String,
    /// Time of the last change of any kind.
    pub updated_at: Timestamp,
    /// Assignees and labels at that time.
    pub assigned: IssueAttributes,
}

/// Entry of a list that users read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedIssue {
    /// Title in one line.
    pub title: String,
    /// False when it is closed.
    pub is_open: bool,
    /// Number, time of change, assignees and labels.
    pub stub: PolledIssue,
}

/// Result of a poll of the open issues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssuePoll {
    /// No change since the `ETag` of the poll; the request cost nothing of the rate limit.
    Unchanged,
    /// At least one issue changed.
    Changed {
        /// Open issues, latest change first.
        issues: Vec<PolledIssue>,
        /// `ETag` for the next poll.
        etag: Option<ETag>,
    },
}

/// Issue with its history. Accounts are absent when they were deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitHubIssue {
    /// Title in one line.
    pub title: String,
    /// Text in Markdown.
    pub body: String,
    /// Link to its page.
    pub url: String,
    /// True while the issue is open.
    pub is_open: bool,
    /// Lock of its conversation; absent while it is not locked.
    pub lock: Option<ConversationLock>,
    /// Time of its creation.
    pub created_at: Option<Timestamp>,
    /// Account that opened it.
    pub author: Option<GitHubUser>,
    /// Present assignees and labels.
    pub assigned: IssueAttributes,
    /// Edits of title and body, oldest first.
    pub edits: Vec<IssueEdit>,
    /// Assignments and labels, oldest first.
    pub events: Vec<IssueTimelineEvent>,
    /// Comments, oldest first.
    pub comments: Vec<IssueComment>,
}

/// Edit of an issue's title or body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueEdit {
    /// Time of the edit.
    pub at: Timestamp,
    /// Account that edited it.
    pub by: Option<GitHubUser>,
}

/// Assignment or labeling of an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueTimelineEvent {
    /// GraphQL id of the event.
    pub id: String,
    /// Time of the event.
    pub at: Timestamp,
    /// Account that caused the event.
    pub by: Option<GitHubUser>,
    /// Assignment or label of the event.
    pub wish: IssueWish,
}

/// Change to an issue that may ask for work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssueWish {
    /// The issue was assigned to this login.
    Assigned(String),
    /// The issue received this label.
    Labeled(String),
}

/// Comment on an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueComment {
    /// Id of the comment.
    pub id: GitHubCommentId,
    /// Account that wrote it.
    pub author: Option<GitHubUser>,
    /// Text in Markdown.
    pub body: String,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of the last edit; equals `created_at` without an edit.
    pub updated_at: Timestamp,
}

/// Request for a review of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewRequest {
    /// Id of the request's event.
    pub id: u64,
    /// Account that requested it; absent when the account was deleted.
    pub by: Option<GitHubUser>,
    /// Login of the requested reviewer, or name of the requested team, such as `acme/shop-owners`.
    pub reviewer: String,
    /// Time of the request.
    pub at: Timestamp,
}

/// Entry of a listing of discussions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscussionStub {
    /// Number in its repository.
    pub number: u64,
    /// Time of the last change of any kind; a comment counts as one.
    pub updated_at: Timestamp,
}

/// Discussion with its comments. Accounts are absent when they were deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitHubDiscussion {
    /// GraphQL id of the discussion.
    pub node_id: String,
    /// Title in one line.
    pub title: String,
    /// Text in Markdown.
    pub body: String,
    /// Link to its page.
    pub url: String,
    /// True while the discussion is open.
    pub is_open: bool,
    /// Lock of its conversation; absent while it is not locked.
    pub lock: Option<ConversationLock>,
    /// Time of its creation.
    pub created_at: Option<Timestamp>,
    /// Account that began it.
    pub author: Option<GitHubUser>,
    /// Name of its category.
    pub category: String,
    /// True when a comment can be marked as the answer.
    pub is_answerable: bool,
    /// GraphQL id of the comment that is marked as the answer.
    pub answer: Option<String>,
    /// Names of its labels.
    pub labels: Vec<String>,
    /// Comments and replies, oldest first.
    pub comments: Vec<DiscussionComment>,
}

/// Comment in a discussion, or a reply to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscussionComment {
    /// Id that webhooks use.
    pub id: GitHubCommentId,
    /// GraphQL id of the comment.
    pub node_id: String,
    /// GraphQL id of the first comment of its thread; equals `node_id` unless the comment is a reply.
    pub thread: String,
    /// Account that wrote it.
    pub author: Option<GitHubUser>,
    /// Text in Markdown.
    pub body: String,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of the last edit; equals `created_at` without an edit.
    pub updated_at: Timestamp,
}

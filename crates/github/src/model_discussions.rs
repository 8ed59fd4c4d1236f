//! Types of GitHub Discussions.

use domain::Timestamp;

use crate::{GitHubCommentId, GitHubUser};

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

//! Discussions as they are read.

use domain::Timestamp;

use crate::{CommentId, User};

/// A discussion as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscussionStub {
    /// Its number.
    pub number: u64,
    /// Its last change of any kind; a comment is one.
    pub updated_at: Timestamp,
}

/// A discussion. Accounts are absent when they were deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discussion {
    /// Its id in GraphQL.
    pub node_id: String,
    /// Its title.
    pub title: String,
    /// Its text, Markdown.
    pub body: String,
    /// Link for people.
    pub url: String,
    /// Whether it is open.
    pub is_open: bool,
    /// When it was begun.
    pub created_at: Option<Timestamp>,
    /// Who began it.
    pub author: Option<User>,
    /// The name of its category.
    pub category: String,
    /// Whether a comment of it can be marked as the answer.
    pub is_answerable: bool,
    /// The id in GraphQL of the comment that is marked so.
    pub answer: Option<String>,
    /// Names of its labels.
    pub labels: Vec<String>,
    /// Comments and replies, oldest first.
    pub comments: Vec<DiscussionComment>,
}

/// A comment in a discussion, or a reply to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscussionComment {
    /// Its id in webhooks.
    pub id: CommentId,
    /// Its id in GraphQL.
    pub node_id: String,
    /// The id in GraphQL of the comment that began its thread: its own, unless it is a reply.
    pub thread: String,
    /// Who wrote it.
    pub author: Option<User>,
    /// Markdown.
    pub body: String,
    /// When it was written.
    pub created_at: Timestamp,
    /// When its text was changed last; `created_at` while it never was.
    pub updated_at: Timestamp,
}

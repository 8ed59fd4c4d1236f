//! What callers see of issues.

use domain::Timestamp;

use crate::{CommentId, ETag};

/// Somebody's account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// What stays: a login can become somebody else's.
    pub id: Option<u64>,
    /// As people see it; that of an App ends in `[bot]`.
    pub login: String,
    /// Whether it belongs to a program.
    pub is_bot: bool,
}

/// Whose an issue is and what it is marked with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assigned {
    /// Logins of its assignees.
    pub assignees: Vec<String>,
    /// Names of its labels.
    pub labels: Vec<String>,
}

/// An issue as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueStub {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Last change of any kind.
    pub updated_at: Timestamp,
    /// Assignees and labels.
    pub assigned: Assigned,
}

/// An issue of a list for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedIssue {
    /// Its one-line title.
    pub title: String,
    /// The rest.
    pub stub: IssueStub,
}

/// What a poll of the open issues found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolledIssues {
    /// Nothing changed since the tag that the poll named; it cost nothing of the rate limit.
    Unchanged,
    /// Something changed.
    Changed {
        /// The latest change first.
        issues: Vec<IssueStub>,
        /// For the next poll.
        etag: Option<ETag>,
    },
}

/// An issue. Accounts are absent when they were deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issue {
    /// Its title.
    pub title: String,
    /// Its text, Markdown.
    pub body: String,
    /// Link for people.
    pub url: String,
    /// Whether it is open.
    pub is_open: bool,
    /// When it was opened.
    pub created_at: Option<Timestamp>,
    /// Who opened it.
    pub author: Option<User>,
    /// Assignees and labels.
    pub assigned: Assigned,
    /// Edits of title and body, oldest first.
    pub edits: Vec<Edit>,
    /// Assignments and labels, oldest first.
    pub events: Vec<IssueEvent>,
    /// Comments, oldest first.
    pub comments: Vec<IssueComment>,
}

/// An edit of an issue's title or body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: Option<User>,
}

/// Something that was done to an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueEvent {
    /// Its id in GraphQL.
    pub id: String,
    /// When.
    pub at: Timestamp,
    /// Who did it.
    pub by: Option<User>,
    /// What.
    pub wish: IssueWish,
}

/// What may ask somebody for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssueWish {
    /// It was assigned to this login.
    Assigned(String),
    /// It got this label.
    Labeled(String),
}

/// A comment on an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueComment {
    /// Its id.
    pub id: CommentId,
    /// Who wrote it.
    pub author: Option<User>,
    /// Markdown.
    pub body: String,
    /// When it was written.
    pub created_at: Timestamp,
    /// When its text was changed last; `created_at` while it never was.
    pub updated_at: Timestamp,
}

/// A request for somebody's review of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewRequest {
    /// Its event's id.
    pub id: u64,
    /// Who asked; absent when the account was deleted.
    pub by: Option<User>,
    /// Login of who is asked.
    pub reviewer: String,
    /// When.
    pub at: Timestamp,
}

//! What callers see of GitHub.

use std::fmt;

use domain::{CommitId, Conclusion, PullRequestRef, RepositoryName, TicketKey, Timestamp};
use secrecy::SecretString;

/// A repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Its name.
    pub name: RepositoryName,
    /// The branch that clones check out.
    pub default_branch: String,
    /// True when not everybody can see it.
    pub private: bool,
    /// True when it is read-only for everybody.
    pub archived: bool,
    /// Link for people.
    pub url: String,
}

/// Where a check comes from; ids are unique within one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// A check run of a GitHub App, Actions included.
    Run,
    /// A commit status.
    Status,
}

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckStatus {
    /// Waiting to start.
    Queued,
    /// Running.
    InProgress,
    /// Over.
    Completed,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckConclusion {
    /// Good.
    Success,
    /// Bad.
    Failure,
    /// Neither good nor bad.
    Neutral,
    /// Cut by somebody.
    Cancelled,
    /// Not run at all.
    Skipped,
    /// Ran too long.
    TimedOut,
    /// A person has to do something.
    ActionRequired,
    /// GitHub gave up on it.
    Stale,
    /// It could not start.
    StartupFailure,
}

impl CheckConclusion {
    /// GitHub's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Neutral => "neutral",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
            Self::TimedOut => "timed_out",
            Self::ActionRequired => "action_required",
            Self::Stale => "stale",
            Self::StartupFailure => "startup_failure",
        }
    }

    /// True when it does not stand in the way of a merge.
    pub const fn is_good(self) -> bool {
        match self {
            Self::Success | Self::Neutral | Self::Skipped => true,
            Self::Failure
            | Self::Cancelled
            | Self::TimedOut
            | Self::ActionRequired
            | Self::Stale
            | Self::StartupFailure => false,
        }
    }
}

/// One check of a commit, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Where it comes from.
    pub kind: CheckKind,
    /// Its id; a repeated check has a new one.
    pub id: u64,
    /// Its name, e.g. `test (3.11)`.
    pub name: String,
    /// The check suite it belongs to; 0 for commit statuses.
    pub suite: u64,
    /// How far it is.
    pub status: CheckStatus,
    /// How it ended; present exactly when completed.
    pub conclusion: Option<CheckConclusion>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// Link for people.
    pub url: String,
    /// The end of what it says about itself, at most 8 KiB.
    pub output_tail: String,
}

impl Check {
    /// The job of GitHub Actions that it is; its address ends in `/actions/runs/1/job/2`.
    pub fn actions_job(&self) -> Option<u64> {
        let (_, job) = self.url.split_once("/actions/runs/")?.1.split_once("/job/")?;
        job.split(['/', '?', '#']).next()?.parse().ok()
    }
}

/// All checks taken together; `None` while one is not complete, or when there is none.
pub fn conclusion(checks: &[Check]) -> Option<Conclusion> {
    let ends: Option<Vec<CheckConclusion>> = checks.iter().map(|check| check.conclusion).collect();
    let ends = ends.filter(|ends| !ends.is_empty())?;
    let good = ends.into_iter().all(CheckConclusion::is_good);
    Some(if good {
        Conclusion::Success
    } else {
        Conclusion::Failure
    })
}

/// Open or closed; a merged pull request is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullRequestState {
    /// Open, draft or not.
    Open,
    /// Merged or given up.
    Closed,
}

/// A pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// Its id in GraphQL.
    pub node_id: String,
    /// Its title.
    pub title: String,
    /// Its description, Markdown.
    pub body: String,
    /// Head branch.
    pub branch: String,
    /// Head commit.
    pub head: CommitId,
    /// Repository of the head branch, `owner/name`; empty when it was deleted.
    pub head_repository: String,
    /// The branch it should be merged into.
    pub base_branch: String,
    /// Login of its author.
    pub author: String,
    /// Link for people.
    pub url: String,
    /// True while it is a draft.
    pub draft: bool,
    /// True when it was merged.
    pub merged: bool,
    /// Login of who merged, where GitHub tells (not in lists).
    pub merged_by: Option<String>,
    /// Open or closed.
    pub state: PullRequestState,
    /// Last change of any kind.
    pub updated_at: Option<Timestamp>,
    /// When it was closed or merged.
    pub closed_at: Option<Timestamp>,
    /// Logins of those whose review is waited for.
    pub requested_reviewers: Vec<String>,
    /// Names of its labels.
    pub labels: Vec<String>,
}

impl PullRequest {
    /// The short form that records and reports carry.
    pub fn to_ref(&self, repository: &RepositoryName) -> PullRequestRef {
        PullRequestRef {
            repository: repository.clone(),
            number: self.number,
            url: self.url.clone(),
            branch: self.branch.clone(),
        }
    }

    /// True when title, head branch or description names the ticket; `repository` is the pull request's.
    pub fn mentions(&self, repository: &RepositoryName, ticket: &TicketKey) -> bool {
        let mut keys = vec![ticket.short()];
        if let TicketKey::GitHub {
            repository: home,
            number,
        } = ticket
            && home == repository
        {
            keys.push(format!("#{number}"));
        }
        let texts = [&self.title, &self.branch, &self.body];
        keys.iter()
            .any(|key| texts.into_iter().any(|text| mentions(text, key)))
    }
}

/// True when `key` stands in `text` as a whole word, in its own spelling: `ENG-1` is not in `ENG-12` or `XENG-1`.
pub fn mentions(text: &str, key: &str) -> bool {
    !key.is_empty()
        && text.match_indices(key).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + key.len()..].chars().next();
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
                && !after.is_some_and(char::is_alphanumeric)
        })
}

/// What GitHub calls one version of an answer; asking with it again costs nothing while nothing changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ETag(pub(crate) String);

/// What a poll for changed pull requests found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Polled {
    /// Nothing changed since the tag that the poll named; it cost nothing of the rate limit.
    Unchanged,
    /// What changed.
    Changed {
        /// Open and closed ones, latest change first.
        pull_requests: Vec<PullRequest>,
        /// For the next poll.
        etag: Option<ETag>,
        /// False when more changed than one poll reads.
        is_complete: bool,
    },
}

/// What a person may do in a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Nothing beyond what everybody may.
    None,
    /// See it.
    Read,
    /// Push to it.
    Write,
    /// Everything.
    Admin,
}

/// Id of a comment on an issue or pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommentId(pub u64);

impl fmt::Display for CommentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A comment on an issue or pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Its id.
    pub id: CommentId,
    /// Login of its author.
    pub author: String,
    /// The author's account, which keeps its id when it is renamed; absent when it was deleted.
    pub author_id: Option<u64>,
    /// Markdown.
    pub body: String,
    /// When it was written.
    pub created_at: Option<Timestamp>,
    /// When its text was changed last; `created_at` while it never was.
    pub updated_at: Option<Timestamp>,
    /// True when our own App or account wrote it.
    pub by_us: bool,
    /// True when the author is a program.
    pub by_bot: bool,
}

/// What somebody said of a pull request: in a review, at a line, or in its conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Login of its author.
    pub author: String,
    /// True when the author is a program.
    pub by_bot: bool,
    /// The place that it is about, `path:line` or `path`; empty: the whole.
    pub place: String,
    /// Markdown.
    pub text: String,
    /// When it was said.
    pub at: Option<Timestamp>,
}

/// How a review judges a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewState {
    /// It may be merged.
    Approved,
    /// It may not be merged as it is.
    ChangesRequested,
    /// No judgement.
    Commented,
    /// Somebody took it back.
    Dismissed,
}

/// A submitted review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// Its id.
    pub id: u64,
    /// Login of its author.
    pub author: String,
    /// The author's account, which keeps its id when it is renamed; absent when it was deleted.
    pub author_id: Option<u64>,
    /// True when the author is a program.
    pub by_bot: bool,
    /// Its judgement.
    pub state: ReviewState,
    /// Markdown; may be empty.
    pub body: String,
    /// When it was submitted.
    pub at: Option<Timestamp>,
    /// Its comments on lines.
    pub comments: Vec<LineComment>,
    /// The commit that was the head when it was submitted; absent when that is gone.
    pub commit: Option<CommitId>,
}

/// A comment of a review on a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineComment {
    /// Its id.
    pub id: u64,
    /// Login of its author.
    pub author: String,
    /// The author's id; absent when the account was deleted.
    pub author_id: Option<u64>,
    /// True when the author is a program.
    pub by_bot: bool,
    /// The file.
    pub path: String,
    /// The line in the new file; absent when it is gone.
    pub line: Option<u64>,
    /// Markdown.
    pub body: String,
    /// The comment that it replies to.
    pub in_reply_to: Option<u64>,
    /// The hunk of the diff that it was made at, up to its line.
    pub hunk: String,
}

/// One attempt of GitHub to deliver a webhook to our App.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookDelivery {
    /// Id of the attempt.
    pub id: u64,
    /// Id of the delivery (`X-GitHub-Delivery`); attempts of one delivery share it.
    pub guid: String,
    /// When it was tried.
    pub delivered_at: Timestamp,
    /// `pull_request`, `check_run` …
    pub event: String,
    /// `opened`, `completed` …
    pub action: Option<String>,
    /// HTTP status of our answer; 0 when there was none.
    pub status_code: u16,
    /// True when it repeats an earlier attempt.
    pub redelivery: bool,
}

/// Where git finds a repository and with which secret.
#[derive(Clone, Debug)]
pub struct GitRemote {
    /// Holds no credentials.
    pub url: String,
    /// Password of the user `x-access-token`, for this repository and this purpose alone, good for five minutes at least.
    pub token: SecretString,
}

//! JSON of comments, and of reviews of pull requests.

use domain::CommitId;
use serde::Deserialize;

use super::{
    parse_instant,
    people::{WireUser, read_account_id, resolve_login},
};
use crate::{
    GitHubComment, GitHubCommentId, PullRequestRemark, PullRequestReview, ReviewLineComment, ReviewVerdict,
};

#[derive(Deserialize)]
pub(crate) struct WireGitHubComment {
    pub(crate) id: u64,
    body: Option<String>,
    user: Option<WireUser>,
    created_at: Option<String>,
    updated_at: Option<String>,
    issue_url: Option<String>,
    performed_via_github_app: Option<WireCommentApp>,
}

#[derive(Deserialize)]
struct WireCommentApp {
    id: u64,
}

impl WireGitHubComment {
    /// Converts to a comment with the number of its issue or pull request. The flag `by_us` stays false
    /// without our login.
    pub(crate) fn into_numbered(self) -> Option<(u64, GitHubComment)> {
        let number = self.issue_url.as_deref()?.rsplit('/').next()?.parse().ok()?;
        Some((number, self.into_comment("", None)))
    }

    pub(crate) fn into_comment(self, our_login: &str, our_app: Option<u64>) -> GitHubComment {
        let author_id = read_account_id(self.user.as_ref());
        let by_bot = self.user.as_ref().is_some_and(WireUser::is_bot);
        let author = resolve_login(self.user);
        // The App's id identifies our comments also after a rename of its login.
        let via_our_app = our_app.is_some() && self.performed_via_github_app.map(|app| app.id) == our_app;
        GitHubComment {
            id: GitHubCommentId(self.id),
            by_us: via_our_app || author.eq_ignore_ascii_case(our_login),
            author,
            author_id,
            by_bot,
            body: self.body.unwrap_or_default(),
            created_at: parse_instant(self.created_at.as_deref()),
            updated_at: parse_instant(self.updated_at.as_deref().or(self.created_at.as_deref())),
        }
    }
}

/// Review, comment on a line, or comment in the conversation.
#[derive(Deserialize)]
pub(crate) struct WireRemark {
    user: Option<WireUser>,
    body: Option<String>,
    path: Option<String>,
    /// Absent when the line was removed since.
    line: Option<u64>,
    submitted_at: Option<String>,
    created_at: Option<String>,
}

impl From<WireRemark> for PullRequestRemark {
    fn from(wire: WireRemark) -> Self {
        let at = wire.submitted_at.or(wire.created_at);
        let place = match (wire.path, wire.line) {
            (Some(path), Some(line)) => format!("{path}:{line}"),
            (Some(path), None) => path,
            (None, _) => String::new(),
        };
        Self {
            by_bot: wire.user.as_ref().is_some_and(WireUser::is_bot),
            author: resolve_login(wire.user),
            place,
            text: wire.body.unwrap_or_default(),
            at: parse_instant(at.as_deref()),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct WireReview {
    id: u64,
    user: Option<WireUser>,
    body: Option<String>,
    state: String,
    submitted_at: Option<String>,
    /// Absent when the commit is gone.
    commit_id: Option<CommitId>,
}

/// Comment of a review on a line.
#[derive(Clone, Deserialize)]
pub(crate) struct WireLineComment {
    id: u64,
    user: Option<WireUser>,
    body: Option<String>,
    path: String,
    /// Absent when the line was removed since.
    line: Option<u64>,
    pull_request_review_id: Option<u64>,
    in_reply_to_id: Option<u64>,
    #[serde(default)]
    diff_hunk: String,
}

impl WireReview {
    /// Converts to a review; `None` for a draft. `comments` are those of the whole pull request.
    pub(crate) fn into_review(self, comments: &[WireLineComment]) -> Option<PullRequestReview> {
        let state = match self.state.to_ascii_uppercase().as_str() {
            "APPROVED" => ReviewVerdict::Approved,
            "CHANGES_REQUESTED" => ReviewVerdict::ChangesRequested,
            "COMMENTED" => ReviewVerdict::Commented,
            "DISMISSED" => ReviewVerdict::Dismissed,
            // A review that is not submitted yet is `PENDING`, and only its author sees it.
            _ => return None,
        };
        let of_it = comments
            .iter()
            .filter(|comment| comment.pull_request_review_id == Some(self.id));
        let comments = of_it.cloned().map(ReviewLineComment::from);
        Some(PullRequestReview {
            id: self.id,
            comments: comments.collect(),
            by_bot: self.user.as_ref().is_some_and(WireUser::is_bot),
            author_id: read_account_id(self.user.as_ref()),
            author: resolve_login(self.user),
            state,
            body: self.body.unwrap_or_default(),
            at: parse_instant(self.submitted_at.as_deref()),
            commit: self.commit_id,
        })
    }
}

impl From<WireLineComment> for ReviewLineComment {
    fn from(wire: WireLineComment) -> Self {
        Self {
            id: wire.id,
            author_id: read_account_id(wire.user.as_ref()),
            by_bot: wire.user.as_ref().is_some_and(WireUser::is_bot),
            author: resolve_login(wire.user),
            path: wire.path,
            line: wire.line,
            body: wire.body.unwrap_or_default(),
            in_reply_to: wire.in_reply_to_id,
            hunk: wire.diff_hunk,
        }
    }
}

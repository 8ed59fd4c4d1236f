//! Comments on issues and pull requests, and reactions.

use domain::{ReactionKind, ReactionSubject, RepositoryName, Timestamp};
use serde_json::json;

use crate::{
    Error, GitHubComment, GitHubCommentId,
    client::{GitHubClients, GitHubMethod},
    discussions::react_in_discussion,
    permissions::AccessKind,
    transport::PAGE,
    wire::WireGitHubComment,
};

const MAX_PAGES: usize = 5;
const MAX_COMMENT_PAGES: usize = 20;
/// Interval to which the start of a listing is rounded down: 5 minutes, in milliseconds.
const STEP_MS: i64 = 5 * 60 * 1000;

/// Comments of a repository that were created from some time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryComments {
    /// Comments, each with the number of its issue or pull request, least recently changed first.
    pub comments: Vec<(u64, GitHubComment)>,
    /// Last listed change, when more comments changed than one listing contains; absent after a complete listing.
    pub listed_to: Option<Timestamp>,
}

/// Reader of comments on issues and pull requests; cheap to clone.
#[derive(Clone, Debug)]
pub struct CommentReader {
    pub(crate) clients: GitHubClients,
}

impl CommentReader {
    /// Lists comments on pull requests and issues that were created at or after `since`, least recently
    /// changed first, at most 500.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the repository does not exist or our account cannot see it.
    pub async fn comments_since(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
    ) -> Result<RepositoryComments, Error> {
        // GitHub's parameter `since` has a resolution of one second.
        let since_s = Timestamp::from_unix_ms(since.unix_s() * 1000);
        // A rounded start keeps the URL the same between polls, so that GitHub answers 304 while nothing is
        // new.
        let step = Timestamp::from_unix_ms(since.unix_ms().div_euclid(STEP_MS) * STEP_MS);
        let (mut comments, is_complete) = match self.comments_from(repository, step).await? {
            (comments, true) => (comments, true),
            // The 500 comments of the rounded start ended too early; older ones must not displace those after
            // `since`.
            (_, false) => self.comments_from(repository, since_s).await?,
        };
        let last = comments.last().and_then(|(_, comment)| comment.updated_at);
        let listed_to = last.filter(|_| !is_complete);
        comments.retain(|(_, comment)| comment.created_at.is_none_or(|at| at >= since_s));
        Ok(RepositoryComments { comments, listed_to })
    }

    /// Lists at most 500 comments from `since` on; the flag is true when the listing is complete.
    async fn comments_from(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
    ) -> Result<(Vec<(u64, GitHubComment)>, bool), Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/comments?since={since}&sort=updated&direction=asc");
        let found: Vec<WireGitHubComment> = client.list_again(repository, &path, MAX_PAGES).await?;
        let is_complete = found.len() < MAX_PAGES * PAGE;
        let comments = found.into_iter().filter_map(WireGitHubComment::into_numbered);
        Ok((comments.collect(), is_complete))
    }
}

/// Writer of comments and reactions; cheap to clone.
#[derive(Clone, Debug)]
pub struct CommentWriter {
    pub(crate) clients: GitHubClients,
}

impl CommentWriter {
    /// Adds a comment to an issue or pull request and returns its id.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no issue or pull request has that number.
    pub async fn comment(
        &self,
        repository: &RepositoryName,
        number: u64,
        body: &str,
    ) -> Result<GitHubCommentId, Error> {
        let path = format!("/issues/{number}/comments");
        let made: WireGitHubComment = self
            .clients
            .of(repository)?
            .write(repository, GitHubMethod::Post, &path, &json!({ "body": body }))
            .await?;
        Ok(GitHubCommentId(made.id))
    }

    /// Lists the comments of an issue or pull request, oldest first; at most 2,000.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no issue or pull request has that number.
    pub async fn list_comments(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<GitHubComment>, Error> {
        let client = self.clients.of(repository)?;
        let us = client.our_login().await?;
        let our_app = client.app_id();
        let path = format!("/issues/{number}/comments");
        let found: Vec<WireGitHubComment> = client
            .list(repository, AccessKind::Write, &path, MAX_COMMENT_PAGES)
            .await?;
        Ok(found
            .into_iter()
            .map(|wire| wire.into_comment(&us, our_app))
            .collect())
    }

    /// Replaces the text of a comment.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the comment was deleted.
    pub async fn update_comment(
        &self,
        repository: &RepositoryName,
        comment: GitHubCommentId,
        body: &str,
    ) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/comments/{comment}");
        let body = json!({ "body": body });
        client.send(repository, GitHubMethod::Patch, &path, &body).await
    }

    /// Deletes a comment of our account.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the comment was deleted already, [`Error::Forbidden`] when another account
    /// wrote it.
    pub async fn delete_comment(
        &self,
        repository: &RepositoryName,
        comment: GitHubCommentId,
    ) -> Result<(), Error> {
        let path = format!("/issues/comments/{comment}");
        self.clients.of(repository)?.delete(repository, &path, None).await
    }

    /// Adds a reaction to an issue or comment; a repeated call changes nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue or comment is missing.
    pub async fn react(&self, to: &ReactionSubject, reaction: ReactionKind) -> Result<(), Error> {
        let repository = to.repository();
        let client = self.clients.of(repository)?;
        let path = match to {
            ReactionSubject::Discussion { number, comment, .. } => {
                let comment = comment.as_deref();
                return react_in_discussion(client, repository, *number, comment, reaction).await;
            }
            ReactionSubject::Issue { number, .. } => format!("/issues/{number}/reactions"),
            ReactionSubject::Comment { id, .. } => format!("/issues/comments/{id}/reactions"),
            ReactionSubject::LineComment { id, .. } => format!("/pulls/comments/{id}/reactions"),
        };
        let body = json!({ "content": reaction.as_str() });
        client.send(repository, GitHubMethod::Post, &path, &body).await
    }
}

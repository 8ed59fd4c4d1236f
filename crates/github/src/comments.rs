//! New comments of a whole repository.

use domain::{RepositoryName, Timestamp};

use crate::{Error, GitHubComment, GitHubReader, permissions::AccessKind, wire::WireGitHubComment};

// GitHub's maximum number of entries per page.
const PAGE: usize = 100;
const MAX_PAGES: usize = 5;
/// Interval to which the start of a listing is rounded down: 5 minutes, in milliseconds.
const STEP_MS: i64 = 5 * 60 * 1000;

impl GitHubReader {
    /// Lists comments on pull requests and issues that were created at or after `since`, least recently
    /// changed first, at most 500.
    ///
    /// Each comes with the number of its issue or pull request.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the repository does not exist or our account cannot see it.
    pub async fn comments_since(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
    ) -> Result<Vec<(u64, GitHubComment)>, Error> {
        // GitHub's parameter `since` has a resolution of one second.
        let since_s = Timestamp::from_unix_ms(since.unix_s() * 1000);
        // A rounded start keeps the URL the same between polls, so that GitHub answers 304 while nothing is
        // new.
        let step = Timestamp::from_unix_ms(since.unix_ms().div_euclid(STEP_MS) * STEP_MS);
        let mut comments = match self.comments_from(repository, step).await? {
            (comments, true) => comments,
            // The 500 comments of the rounded start ended too early; older ones must not displace those after
            // `since`.
            (_, false) => self.comments_from(repository, since_s).await?.0,
        };
        comments.retain(|(_, comment)| comment.created_at.is_none_or(|at| at >= since_s));
        Ok(comments)
    }

    /// Lists at most 500 comments from `since` on; the flag is true when the listing is complete.
    async fn comments_from(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
    ) -> Result<(Vec<(u64, GitHubComment)>, bool), Error> {
        let mut comments = Vec::new();
        for page in 1..=MAX_PAGES {
            let query = format!("since={since}&sort=updated&direction=asc&per_page={PAGE}&page={page}");
            let found: Vec<WireGitHubComment> = self
                .clients
                .of(repository)?
                .get_again(repository, AccessKind::Look, &format!("/issues/comments?{query}"))
                .await?;
            let is_last = found.len() < PAGE;
            comments.extend(found.into_iter().filter_map(WireGitHubComment::into_numbered));
            if is_last {
                return Ok((comments, true));
            }
        }
        Ok((comments, false))
    }
}

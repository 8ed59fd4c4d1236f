//! New comments of a whole repository.

use domain::{RepositoryName, Timestamp};

use crate::{Comment, Error, Reader, permissions::Access, wire::WireComment};

const PAGE: usize = 100;
const MAX_PAGES: usize = 5;
/// How far apart the moments are that comments are asked for from.
const STEP_MS: i64 = 5 * 60 * 1000;

impl Reader {
    /// Comments of the repository's pull requests and issues that were made at or after `since`, least recently changed
    /// first, each with the number of what it stands on; the 500 first at most.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the repository does not exist or our account cannot see it.
    pub async fn comments_since(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
    ) -> Result<Vec<(u64, Comment)>, Error> {
        // GitHub takes whole seconds.
        let since_s = Timestamp::from_unix_ms(since.unix_s() * 1000);
        // Polls that look back to the same moment ask the same question, so that an answer without news is free.
        let step = Timestamp::from_unix_ms(since.unix_ms().div_euclid(STEP_MS) * STEP_MS);
        let mut comments = match self.comments_from(repository, step).await? {
            (comments, true) => comments,
            // More than can be shown: those before `since` must not take the place of others.
            (_, false) => self.comments_from(repository, since_s).await?.0,
        };
        comments.retain(|(_, comment)| comment.created_at.is_none_or(|at| at >= since_s));
        Ok(comments)
    }

    /// The 500 first comments since then at most, and whether these are all.
    async fn comments_from(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
    ) -> Result<(Vec<(u64, Comment)>, bool), Error> {
        let mut comments = Vec::new();
        for page in 1..=MAX_PAGES {
            let query = format!("since={since}&sort=updated&direction=asc&per_page={PAGE}&page={page}");
            let found: Vec<WireComment> = self
                .clients
                .of(repository)?
                .get_again(repository, Access::Look, &format!("/issues/comments?{query}"))
                .await?;
            let is_last = found.len() < PAGE;
            comments.extend(found.into_iter().filter_map(WireComment::into_numbered));
            if is_last {
                return Ok((comments, true));
            }
        }
        Ok((comments, false))
    }
}

//! What happens to a pull request after it was opened: logs of its checks, reviews and replies, draft again.

use domain::RepositoryName;
use serde_json::{Value, json};

use crate::{
    Check, CommentId, Error, LineComment, Reader, Review, Writer,
    client::{Method, encode},
    permissions::Access,
    wire::{WireComment, WireLineComment, WireReview},
};

const PAGE: usize = 100;
/// How much of a log is read, from its end.
const LOG_BYTES: usize = 512 * 1024;

const BACK_TO_DRAFT: &str = "mutation($id: ID!) { convertPullRequestToDraft(input: {pullRequestId: $id}) \
    { pullRequest { id isDraft } } }";

/// The threads of reviews, each with its first comment; the 100 first.
const THREADS: &str = "query($owner: String!, $name: String!, $number: Int!) { \
    repository(owner: $owner, name: $name) { pullRequest(number: $number) { reviewThreads(first: 100) { nodes { \
    id isResolved comments(first: 1) { nodes { databaseId } } } } } } }";
const RESOLVE: &str =
    "mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { id isResolved } } }";

impl Reader {
    /// The end of the log of a failed job of GitHub Actions; `None` for a check of another system, or when the log is gone.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn job_log(&self, repository: &RepositoryName, check: &Check) -> Result<Option<String>, Error> {
        let Some(job) = check.actions_job() else {
            return Ok(None);
        };
        let client = self.clients.of(repository)?;
        let path = format!("/actions/jobs/{job}/logs");
        match client
            .get_redirected(repository, Access::Look, &path, LOG_BYTES)
            .await
        {
            Ok(log) => Ok(Some(log)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The checks of the tip of a branch.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such branch.
    pub async fn branch_checks(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Vec<Check>, Error> {
        self.checks_of(repository, &encode(branch)).await
    }

    /// The reviews of a pull request that were submitted, oldest first, with their comments on lines; the first 100 of each.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such pull request.
    pub async fn reviews(&self, repository: &RepositoryName, number: u64) -> Result<Vec<Review>, Error> {
        let client = self.clients.of(repository)?;
        let path = |what: &str| format!("/pulls/{number}/{what}?per_page={PAGE}");
        let reviews: Vec<WireReview> = client
            .get_again(repository, Access::Look, &path("reviews"))
            .await?;
        if reviews.is_empty() {
            return Ok(Vec::new());
        }
        let comments: Vec<WireLineComment> = client
            .get_again(repository, Access::Look, &path("comments"))
            .await?;
        Ok(reviews
            .into_iter()
            .filter_map(|review| review.into_review(&comments))
            .collect())
    }
}

impl Writer {
    /// Makes a pull request a draft again; one that is a draft already is a success.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Unknown`] when it may have happened.
    pub async fn back_to_draft(
        &self,
        repository: &RepositoryName,
        number: u64,
        node_id: &str,
    ) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        match client
            .graphql(
                repository,
                Access::MarkReady,
                BACK_TO_DRAFT,
                json!({ "id": node_id }),
            )
            .await
        {
            Err(Error::Rejected { detail }) => {
                let now = client.pull_request(repository, Access::Write, number).await?;
                match now.draft {
                    true => Ok(()),
                    false => Err(Error::Rejected { detail }),
                }
            }
            done => done.map(drop),
        }
    }

    /// The thread of a review that this comment began, when it is there and not resolved.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such pull request.
    pub async fn open_thread(
        &self,
        repository: &RepositoryName,
        number: u64,
        comment: u64,
    ) -> Result<Option<String>, Error> {
        let client = self.clients.of(repository)?;
        let variables = json!({ "number": number });
        let data = client
            .query(repository, Access::Write, THREADS, variables)
            .await?;
        let threads = &data["repository"]["pullRequest"]["reviewThreads"]["nodes"];
        let mut threads = threads.as_array().into_iter().flatten();
        let is_it = |thread: &&Value| {
            thread["comments"]["nodes"][0]["databaseId"].as_u64() == Some(comment)
                && thread["isResolved"] == false
        };
        Ok(threads
            .find(is_it)
            .and_then(|thread| thread["id"].as_str())
            .map(str::to_owned))
    }

    /// Resolves a thread of a review; one that is resolved stays so.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Unknown`] when it may have happened.
    pub async fn resolve_thread(&self, repository: &RepositoryName, thread: &str) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let resolved = client.graphql(repository, Access::MarkReady, RESOLVE, json!({ "id": thread }));
        resolved.await.map(drop)
    }

    /// Replies to a comment of a review on a line.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such comment.
    pub async fn reply(
        &self,
        repository: &RepositoryName,
        number: u64,
        comment: u64,
        body: &str,
    ) -> Result<CommentId, Error> {
        let path = format!("/pulls/{number}/comments/{comment}/replies");
        let client = self.clients.of(repository)?;
        let made: WireComment = client
            .write(repository, Method::Post, &path, &json!({ "body": body }))
            .await?;
        Ok(CommentId(made.id))
    }

    /// The comments on lines of a pull request; the first 100.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such pull request.
    pub async fn line_comments(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<LineComment>, Error> {
        let path = format!("/pulls/{number}/comments?per_page={PAGE}");
        let client = self.clients.of(repository)?;
        let found: Vec<WireLineComment> = client.get(repository, Access::Write, &path).await?;
        Ok(found.into_iter().map(LineComment::from).collect())
    }

    /// The submitted reviews of a pull request, oldest first, without their comments; the first 100.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such pull request.
    pub async fn reviews(&self, repository: &RepositoryName, number: u64) -> Result<Vec<Review>, Error> {
        let path = format!("/pulls/{number}/reviews?per_page={PAGE}");
        let client = self.clients.of(repository)?;
        let found: Vec<WireReview> = client.get(repository, Access::Write, &path).await?;
        Ok(found
            .into_iter()
            .filter_map(|review| review.into_review(&[]))
            .collect())
    }

    /// Asks people for a review; those who are asked already stay asked.
    ///
    /// # Errors
    /// [`Error::Rejected`] when one of them is the author or no collaborator.
    pub async fn request_reviewers(
        &self,
        repository: &RepositoryName,
        number: u64,
        logins: &[String],
    ) -> Result<(), Error> {
        let path = format!("/pulls/{number}/requested_reviewers");
        let client = self.clients.of(repository)?;
        let body = json!({ "reviewers": logins });
        let _: serde_json::Value = client.write(repository, Method::Post, &path, &body).await?;
        Ok(())
    }
}

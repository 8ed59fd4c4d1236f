//! Work on an open pull request: job logs, reviews, threads, replies and the return to draft.

use domain::RepositoryName;
use serde_json::{Value, json};

use crate::{
    CommitCheck, Error, GitHubCommentId, GitHubReader, GitHubWriter, PullRequestReview, ReviewLineComment,
    client::{GitHubMethod, percent_encode},
    permissions::AccessKind,
    wire::{WireGitHubComment, WireLineComment, WireReview},
};

// GitHub's maximum number of entries per page.
const PAGE: usize = 100;
// Bytes that are read from the end of a log.
const LOG_BYTES: usize = 512 * 1024;

const BACK_TO_DRAFT: &str = "mutation($id: ID!) { convertPullRequestToDraft(input: {pullRequestId: $id}) \
    { pullRequest { id isDraft } } }";

// The first 100 threads of reviews, each with its first comment.
const THREADS: &str = "query($owner: String!, $name: String!, $number: Int!) { \
    repository(owner: $owner, name: $name) { pullRequest(number: $number) { reviewThreads(first: 100) { nodes { \
    id isResolved comments(first: 1) { nodes { databaseId } } } } } } }";
const RESOLVE: &str =
    "mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { id isResolved } } }";

impl GitHubReader {
    /// Reads the end of the log of a GitHub Actions job; `None` for a check of another system or an expired
    /// log.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn job_log(
        &self,
        repository: &RepositoryName,
        check: &CommitCheck,
    ) -> Result<Option<String>, Error> {
        let Some(job) = check.actions_job() else {
            return Ok(None);
        };
        let client = self.clients.of(repository)?;
        let path = format!("/actions/jobs/{job}/logs");
        match client
            .get_redirected(repository, AccessKind::Look, &path, LOG_BYTES)
            .await
        {
            Ok(log) => Ok(Some(log)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the checks at the tip of a branch.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the branch is missing.
    pub async fn branch_checks(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Vec<CommitCheck>, Error> {
        self.checks_of(repository, &percent_encode(branch)).await
    }

    /// Lists the submitted reviews of a pull request, oldest first, with their comments on lines; the first
    /// 100 of each.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the pull request is missing.
    pub async fn reviews(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<PullRequestReview>, Error> {
        let client = self.clients.of(repository)?;
        let path = |what: &str| format!("/pulls/{number}/{what}?per_page={PAGE}");
        let reviews: Vec<WireReview> = client
            .get_again(repository, AccessKind::Look, &path("reviews"))
            .await?;
        // Comments on lines belong to reviews, so the second request is needless without one.
        if reviews.is_empty() {
            return Ok(Vec::new());
        }
        let comments: Vec<WireLineComment> = client
            .get_again(repository, AccessKind::Look, &path("comments"))
            .await?;
        Ok(reviews
            .into_iter()
            .filter_map(|review| review.into_review(&comments))
            .collect())
    }
}

impl GitHubWriter {
    /// Converts a pull request back to a draft; one that is a draft already is a success.
    ///
    /// # Errors
    /// [`Error::Unknown`] when GitHub may have converted it; otherwise any [`Error`].
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
                AccessKind::MarkReady,
                BACK_TO_DRAFT,
                json!({ "id": node_id }),
            )
            .await
        {
            // GitHub refuses the conversion of a draft, so a refusal may mean success.
            Err(Error::Rejected { detail }) => {
                let now = client.pull_request(repository, AccessKind::Write, number).await?;
                match now.draft {
                    true => Ok(()),
                    false => Err(Error::Rejected { detail }),
                }
            }
            done => done.map(drop),
        }
    }

    /// Finds the unresolved review thread that this comment began, by its GraphQL id.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the pull request is missing.
    pub async fn open_thread(
        &self,
        repository: &RepositoryName,
        number: u64,
        comment: u64,
    ) -> Result<Option<String>, Error> {
        let client = self.clients.of(repository)?;
        let variables = json!({ "number": number });
        let data = client
            .query(repository, AccessKind::Write, THREADS, variables)
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

    /// Resolves a review thread; a resolved one stays resolved.
    ///
    /// # Errors
    /// [`Error::Unknown`] when GitHub may have resolved it; otherwise any [`Error`].
    pub async fn resolve_thread(&self, repository: &RepositoryName, thread: &str) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let resolved = client.graphql(
            repository,
            AccessKind::MarkReady,
            RESOLVE,
            json!({ "id": thread }),
        );
        resolved.await.map(drop)
    }

    /// Replies to a review's comment on a line.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the comment is missing.
    pub async fn reply(
        &self,
        repository: &RepositoryName,
        number: u64,
        comment: u64,
        body: &str,
    ) -> Result<GitHubCommentId, Error> {
        let path = format!("/pulls/{number}/comments/{comment}/replies");
        let client = self.clients.of(repository)?;
        let made: WireGitHubComment = client
            .write(repository, GitHubMethod::Post, &path, &json!({ "body": body }))
            .await?;
        Ok(GitHubCommentId(made.id))
    }

    /// Lists the first 100 comments on lines of a pull request.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the pull request is missing.
    pub async fn line_comments(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<ReviewLineComment>, Error> {
        let path = format!("/pulls/{number}/comments?per_page={PAGE}");
        let client = self.clients.of(repository)?;
        let found: Vec<WireLineComment> = client.get(repository, AccessKind::Write, &path).await?;
        Ok(found.into_iter().map(ReviewLineComment::from).collect())
    }

    /// Lists the first 100 submitted reviews of a pull request, oldest first, without their comments.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the pull request is missing.
    pub async fn reviews(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<PullRequestReview>, Error> {
        let path = format!("/pulls/{number}/reviews?per_page={PAGE}");
        let client = self.clients.of(repository)?;
        let found: Vec<WireReview> = client.get(repository, AccessKind::Write, &path).await?;
        Ok(found
            .into_iter()
            .filter_map(|review| review.into_review(&[]))
            .collect())
    }

    /// Requests reviews from users; present requests stay.
    ///
    /// # Errors
    /// [`Error::Rejected`] when one of them is the author or not a collaborator.
    pub async fn request_reviewers(
        &self,
        repository: &RepositoryName,
        number: u64,
        logins: &[String],
    ) -> Result<(), Error> {
        let path = format!("/pulls/{number}/requested_reviewers");
        let client = self.clients.of(repository)?;
        let body = json!({ "reviewers": logins });
        let _: serde_json::Value = client.write(repository, GitHubMethod::Post, &path, &body).await?;
        Ok(())
    }
}

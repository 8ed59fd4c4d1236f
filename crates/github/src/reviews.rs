//! Reviews of pull requests: changed files, requests, submission, threads and replies.

use domain::{CommitId, PullRequestFile, RepositoryName};
use serde_json::{Value, json};

use crate::{
    Error, GitHubCommentId, PullRequestRemark, PullRequestReview, ReviewLineComment, ReviewRequest,
    client::{GitHubClient, GitHubClients, GitHubMethod},
    permissions::AccessKind,
    transport::PAGE,
    wire::{
        WireComparison, WireFile, WireGitHubComment, WireIssueEvent, WireLineComment, WirePage, WireRemark,
        WireReview, WireReviewThread,
    },
};

const MAX_FILE_PAGES: usize = 3;
// Every reply in a thread is a review of its own.
pub(crate) const MAX_REVIEW_PAGES: usize = 10;
const MAX_EVENT_PAGES: usize = 10;
pub(crate) const MAX_THREAD_PAGES: usize = 10;

// A page of the threads of reviews, each with its first comment.
const THREADS: &str = "query($owner: String!, $name: String!, $number: Int!, $after: String) { \
    repository(owner: $owner, name: $name) { pullRequest(number: $number) { \
    reviewThreads(first: 100, after: $after) { pageInfo { hasNextPage endCursor } nodes { \
    id isResolved comments(first: 1) { nodes { databaseId } } } } } } }";
const RESOLVE: &str =
    "mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { id isResolved } } }";

/// Review to submit. It never approves a pull request; approval is reserved for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReview {
    /// Commit that the review covers.
    pub commit: CommitId,
    /// True when the review requests changes before a merge.
    pub asks_for_changes: bool,
    /// Text in Markdown.
    pub body: String,
    /// Comments on lines of the new files.
    pub comments: Vec<NewComment>,
}

/// Comment of a review on a line of the new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewComment {
    /// Path of the file.
    pub path: String,
    /// Line, counted from 1; it must be part of the pull request's diff.
    pub line: u32,
    /// First of several lines; `line` is then the last one.
    pub start_line: Option<u32>,
    /// Text in Markdown.
    pub body: String,
}

impl NewComment {
    fn json(&self) -> Value {
        let mut json = json!({ "path": self.path, "line": self.line, "side": "RIGHT", "body": self.body });
        if let Some(start) = self.start_line {
            json["start_line"] = start.into();
            json["start_side"] = "RIGHT".into();
        }
        json
    }
}

/// Reader of reviews, their requests and remarks, with the files that they are about; cheap to clone.
#[derive(Clone, Debug)]
pub struct ReviewReader {
    pub(crate) clients: GitHubClients,
}

impl ReviewReader {
    /// Lists the first 300 files that a pull request changes.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the pull request is missing.
    pub async fn changed_files(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<PullRequestFile>, Error> {
        let client = self.clients.of(repository)?;
        changed_files(client, AccessKind::Look, repository, number).await
    }

    /// Lists the first 300 files that changed between a commit and a later one.
    ///
    /// # Errors
    /// [`Error::NotFound`] when one of the commits is gone.
    pub async fn changed_since(
        &self,
        repository: &RepositoryName,
        base: &CommitId,
        head: &CommitId,
    ) -> Result<Vec<PullRequestFile>, Error> {
        let client = self.clients.of(repository)?;
        // GitHub puts the files on the first page only. The commits are not needed, so the page holds one of
        // them.
        let path = format!("/compare/{base}...{head}?per_page=1&page=1");
        let found: WireComparison = client.get(repository, AccessKind::Look, &path).await?;
        Ok(found.files.into_iter().map(PullRequestFile::from).collect())
    }

    /// Lists the requests for reviews of a pull request, oldest first, among its first 1,000 events.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the pull request is missing.
    pub async fn review_requests(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<ReviewRequest>, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}/events");
        let found: Vec<WireIssueEvent> = client.list_again(repository, &path, MAX_EVENT_PAGES).await?;
        Ok(found
            .into_iter()
            .filter_map(|event| event.into_request(repository.owner()))
            .collect())
    }

    /// Lists the submitted reviews of a pull request, oldest first, with their comments on lines; the first
    /// 1,000 of each.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the pull request is missing.
    pub async fn reviews(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<PullRequestReview>, Error> {
        let client = self.clients.of(repository)?;
        let path = |what: &str| format!("/pulls/{number}/{what}");
        let reviews: Vec<WireReview> = client
            .list_again(repository, &path("reviews"), MAX_REVIEW_PAGES)
            .await?;
        // Comments on lines belong to reviews, so the second request is needless without one.
        if reviews.is_empty() {
            return Ok(Vec::new());
        }
        let comments: Vec<WireLineComment> = client
            .list_again(repository, &path("comments"), MAX_REVIEW_PAGES)
            .await?;
        Ok(reviews
            .into_iter()
            .filter_map(|review| review.into_review(&comments))
            .collect())
    }

    /// Lists the remarks on a pull request, oldest first: reviews, comments on lines and the conversation,
    /// the first 100 of each. Remarks without text are left out.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no pull request has that number.
    pub async fn remarks(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<PullRequestRemark>, Error> {
        let mut remarks = Vec::new();
        // GitHub has separate endpoints for reviews, comments on lines and the conversation.
        for place in [
            format!("/pulls/{number}/reviews"),
            format!("/pulls/{number}/comments"),
            format!("/issues/{number}/comments"),
        ] {
            let found: Vec<WireRemark> = self
                .clients
                .of(repository)?
                .get_again(repository, AccessKind::Look, &format!("{place}?per_page={PAGE}"))
                .await?;
            remarks.extend(found.into_iter().map(PullRequestRemark::from));
        }
        remarks.retain(|remark| !remark.text.trim().is_empty());
        remarks.sort_by_key(|remark| remark.at);
        Ok(remarks)
    }
}

async fn changed_files(
    client: &GitHubClient,
    access: AccessKind,
    repository: &RepositoryName,
    number: u64,
) -> Result<Vec<PullRequestFile>, Error> {
    let path = format!("/pulls/{number}/files");
    let found: Vec<WireFile> = client.list(repository, access, &path, MAX_FILE_PAGES).await?;
    Ok(found.into_iter().map(PullRequestFile::from).collect())
}

/// Writer of reviews, their threads and requests; cheap to clone.
#[derive(Clone, Debug)]
pub struct ReviewWriter {
    pub(crate) clients: GitHubClients,
}

impl ReviewWriter {
    /// Lists the first 300 files that a pull request changes.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the pull request is missing.
    pub async fn changed_files(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<PullRequestFile>, Error> {
        let client = self.clients.of(repository)?;
        changed_files(client, AccessKind::Write, repository, number).await
    }

    /// Submits a review with all its comments at once and returns its id.
    ///
    /// # Errors
    /// [`Error::Rejected`] when a comment is on a line outside the diff, or the pull request is ours and the
    /// review requests changes.
    pub async fn submit_review(
        &self,
        repository: &RepositoryName,
        number: u64,
        review: &NewReview,
    ) -> Result<u64, Error> {
        #[derive(serde::Deserialize)]
        struct CreatedReview {
            id: u64,
        }
        let comments: Vec<Value> = review.comments.iter().map(NewComment::json).collect();
        let event = if review.asks_for_changes {
            "REQUEST_CHANGES"
        } else {
            "COMMENT"
        };
        let body = json!({
            "commit_id": review.commit.as_str(), "event": event, "body": review.body, "comments": comments,
        });
        let path = format!("/pulls/{number}/reviews");
        let client = self.clients.of(repository)?;
        let made: CreatedReview = client.write(repository, GitHubMethod::Post, &path, &body).await?;
        Ok(made.id)
    }

    /// Lists the first 1,000 submitted reviews of a pull request, oldest first, without their comments.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the pull request is missing.
    pub async fn reviews(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<PullRequestReview>, Error> {
        let path = format!("/pulls/{number}/reviews");
        let client = self.clients.of(repository)?;
        let found: Vec<WireReview> = client
            .list(repository, AccessKind::Write, &path, MAX_REVIEW_PAGES)
            .await?;
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
        client.send(repository, GitHubMethod::Post, &path, &body).await
    }

    /// Lists the first 1,000 comments on lines of a pull request.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the pull request is missing.
    pub async fn line_comments(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<ReviewLineComment>, Error> {
        let path = format!("/pulls/{number}/comments");
        let client = self.clients.of(repository)?;
        let found: Vec<WireLineComment> = client
            .list(repository, AccessKind::Write, &path, MAX_REVIEW_PAGES)
            .await?;
        Ok(found.into_iter().map(ReviewLineComment::from).collect())
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

    /// Finds the unresolved review thread that this comment began, by its GraphQL id. Searches the first 1,000 threads.
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
        let mut after = None::<String>;
        for _ in 0..MAX_THREAD_PAGES {
            let variables = json!({ "number": number, "after": after });
            let mut data = client
                .query(repository, AccessKind::Write, THREADS, variables)
                .await?;
            let page = data.pointer_mut("/repository/pullRequest/reviewThreads");
            let Some(page) = page.map(Value::take) else {
                break;
            };
            let page: WirePage<WireReviewThread> =
                serde_json::from_value(page).map_err(|error| Error::Malformed {
                    detail: format!("the review threads: {:?} error", error.classify()),
                })?;
            let (threads, next) = page.into_parts();
            if let Some(thread) = threads.into_iter().find(|thread| thread.is_begun_by(comment)) {
                return Ok(thread.into_open_id());
            }
            if next.is_none() {
                break;
            }
            after = next;
        }
        Ok(None)
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
}

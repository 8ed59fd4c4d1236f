//! Reviewing pull requests: what they change, who asked, and the review itself.

use domain::{ChangedFile, CommitId, RepositoryName};
use serde_json::{Value, json};

use crate::{
    Error, Reader, ReviewRequest, Writer,
    client::{Client, Method},
    permissions::Access,
    wire::{WireCommit, WireComparison, WireFile, WireIssueEvent},
};

const PAGE: usize = 100;
const MAX_COMMIT_PAGES: usize = 3;
const MAX_FILE_PAGES: usize = 3;
const MAX_EVENT_PAGES: usize = 10;

/// A review to submit. It approves nothing: that is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReview {
    /// The commit that it is about.
    pub commit: CommitId,
    /// Whether changes are asked for before a merge.
    pub asks_for_changes: bool,
    /// Markdown.
    pub body: String,
    /// Comments on lines of the new files.
    pub comments: Vec<NewComment>,
}

/// A comment of a review on a line of the new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewComment {
    /// The file.
    pub path: String,
    /// The line, from 1; it must be part of the pull request's diff.
    pub line: u32,
    /// The first of several lines, the last of which is `line`.
    pub start_line: Option<u32>,
    /// Markdown.
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

impl Reader {
    /// What a pull request changes: its 300 first files.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such pull request.
    pub async fn changed_files(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<ChangedFile>, Error> {
        let client = self.clients.of(repository)?;
        changed_files(client, Access::Look, repository, number).await
    }

    /// What a commit changes since another that it comes from; its 300 first files.
    ///
    /// # Errors
    /// [`Error::NotFound`] when one of them is gone.
    pub async fn changed_since(
        &self,
        repository: &RepositoryName,
        base: &CommitId,
        head: &CommitId,
    ) -> Result<Vec<ChangedFile>, Error> {
        let client = self.clients.of(repository)?;
        // The files come with the first page alone; of the commits one is enough.
        let path = format!("/compare/{base}...{head}?per_page=1&page=1");
        let found: WireComparison = client.get(repository, Access::Look, &path).await?;
        Ok(found.files.into_iter().map(ChangedFile::from).collect())
    }

    /// The commits of a pull request, oldest first; the 250 that GitHub lists at most.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such pull request.
    pub async fn pull_request_commits(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<CommitId>, Error> {
        let client = self.clients.of(repository)?;
        let mut commits = Vec::new();
        for page in 1..=MAX_COMMIT_PAGES {
            let path = format!("/pulls/{number}/commits?per_page={PAGE}&page={page}");
            let found: Vec<WireCommit> = client.get_again(repository, Access::Look, &path).await?;
            let is_last = found.len() < PAGE;
            commits.extend(found.into_iter().map(|commit| commit.sha));
            if is_last {
                break;
            }
        }
        Ok(commits)
    }

    /// The requests for reviews by people of a pull request, oldest first; of its 1,000 first events.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such pull request.
    pub async fn review_requests(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<ReviewRequest>, Error> {
        let client = self.clients.of(repository)?;
        let mut requests = Vec::new();
        for page in 1..=MAX_EVENT_PAGES {
            let path = format!("/issues/{number}/events?per_page={PAGE}&page={page}");
            let found: Vec<WireIssueEvent> = client.get_again(repository, Access::Look, &path).await?;
            let is_last = found.len() < PAGE;
            requests.extend(found.into_iter().filter_map(WireIssueEvent::into_request));
            if is_last {
                break;
            }
        }
        Ok(requests)
    }
}

async fn changed_files(
    client: &Client,
    access: Access,
    repository: &RepositoryName,
    number: u64,
) -> Result<Vec<ChangedFile>, Error> {
    let mut files = Vec::new();
    for page in 1..=MAX_FILE_PAGES {
        let path = format!("/pulls/{number}/files?per_page={PAGE}&page={page}");
        let found: Vec<WireFile> = client.get(repository, access, &path).await?;
        let is_last = found.len() < PAGE;
        files.extend(found.into_iter().map(ChangedFile::from));
        if is_last {
            break;
        }
    }
    Ok(files)
}

impl Writer {
    /// What a pull request changes: its 300 first files.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such pull request.
    pub async fn changed_files(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<ChangedFile>, Error> {
        let client = self.clients.of(repository)?;
        changed_files(client, Access::Write, repository, number).await
    }

    /// Submits a review with all its comments at once, and gives its id.
    ///
    /// # Errors
    /// [`Error::Rejected`] when a comment stands on a line that is not in the diff, or changes are asked for from ourselves.
    pub async fn submit_review(
        &self,
        repository: &RepositoryName,
        number: u64,
        review: &NewReview,
    ) -> Result<u64, Error> {
        #[derive(serde::Deserialize)]
        struct Made {
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
        let made: Made = client.write(repository, Method::Post, &path, &body).await?;
        Ok(made.id)
    }
}

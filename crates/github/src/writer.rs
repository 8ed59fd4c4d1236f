//! What may be written at GitHub, and what a writer has to look at before. A write is never repeated inside.

use std::collections::BTreeMap;

use domain::{CommitId, Instance, RepositoryName};
use serde_json::{Value, json};

use crate::{
    Comment, CommentId, Error, Gated, GitRemote, Identity, PullRequest, Repository, Settings,
    client::{Method, encode_path},
    clients::Clients,
    permissions::Access,
    wire::{WireComment, WirePullRequest, WireRef},
};

const PAGE: usize = 100;
const MAX_COMMENT_PAGES: usize = 20;

const MARK_READY: &str = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) \
    { pullRequest { id isDraft } } }";

/// Writes at GitHub; cheap to clone. Reads are tried three times, writes once: after [`Error::Unknown`] look, then
/// write again.
#[derive(Clone, Debug)]
pub struct Writer {
    pub(crate) clients: Clients,
}

impl Writer {
    /// A writer of the default instance with its own connections; needs a tokio runtime. Connects to nothing yet.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when the private key cannot be read, [`Error::Rejected`] when a URL is not valid.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        Self::with_instances(Some(settings), &BTreeMap::new())
    }

    /// The same for the default instance, if there is one, and those that repositories may name.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn with_instances(
        settings: Option<&Settings>,
        others: &BTreeMap<Instance, Settings>,
    ) -> Result<Self, Error> {
        Ok(Self {
            clients: Clients::new(settings, others, "writer", None)?,
        })
    }

    /// The same writer, that asks before each request and tells of each answer who keeps the limits of its accounts.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn gated(
        settings: Option<&Settings>,
        others: &BTreeMap<Instance, Settings>,
        gated: &Gated,
    ) -> Result<Self, Error> {
        Ok(Self {
            clients: Clients::new(settings, others, "writer", Some(gated))?,
        })
    }

    /// Where git fetches the repository from.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the App is not installed on the repository.
    pub async fn fetch_remote(&self, repository: &RepositoryName) -> Result<GitRemote, Error> {
        self.clients
            .of(repository)?
            .git_remote(repository, Access::Fetch)
            .await
    }

    /// Where git pushes to.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the App is not installed on the repository.
    pub async fn push_remote(&self, repository: &RepositoryName) -> Result<GitRemote, Error> {
        self.clients
            .of(repository)?
            .git_remote(repository, Access::Push)
            .await
    }

    /// The repository itself.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it does not exist or the App is not installed there.
    pub async fn repository(&self, repository: &RepositoryName) -> Result<Repository, Error> {
        self.clients
            .of(repository)?
            .repository(repository, Access::Write)
            .await
    }

    /// One pull request.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that number.
    pub async fn pull_request(&self, repository: &RepositoryName, number: u64) -> Result<PullRequest, Error> {
        self.clients
            .of(repository)?
            .pull_request(repository, Access::Write, number)
            .await
    }

    /// The pull request whose head is that branch of the repository: an open one if there is one, else the newest.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn find_pull_request_by_head(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Option<PullRequest>, Error> {
        self.clients
            .of(repository)?
            .find_pull_request_by_head(repository, Access::Write, branch)
            .await
    }

    /// The commit that a branch points at; `None` when there is no such branch.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn branch_head(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Option<CommitId>, Error> {
        let path = format!("/git/ref/heads/{}", encode_path(branch));
        let found = Error::none_if_missing(
            self.clients
                .of(repository)?
                .get::<WireRef>(repository, Access::Write, &path)
                .await,
        )?;
        Ok(found.map(|found| found.object.sha))
    }

    /// Opens a pull request from a branch of the same repository.
    ///
    /// # Errors
    /// [`Error::Conflict`] when one is open for that branch already, [`Error::Rejected`] when GitHub refuses it,
    /// e.g. no commits between the branches.
    pub async fn create_pull_request(
        &self,
        repository: &RepositoryName,
        head: &str,
        base: &str,
        title: &str,
        body: &str,
        draft: bool,
    ) -> Result<PullRequest, Error> {
        let body = json!({ "head": head, "base": base, "title": title, "body": body, "draft": draft });
        let made: WirePullRequest = self
            .clients
            .of(repository)?
            .write(repository, Method::Post, "/pulls", &body)
            .await?;
        Ok(made.into())
    }

    /// Ends a pull request's draft state; `node_id` is [`PullRequest::node_id`]. No error when it is no draft.
    ///
    /// # Errors
    /// [`Error::Rejected`] when GitHub refuses, e.g. because it is closed.
    pub async fn mark_ready(
        &self,
        repository: &RepositoryName,
        number: u64,
        node_id: &str,
    ) -> Result<(), Error> {
        match self
            .clients
            .of(repository)?
            .graphql(
                repository,
                Access::MarkReady,
                MARK_READY,
                json!({ "id": node_id }),
            )
            .await
        {
            Ok(_) => Ok(()),
            Err(Error::Rejected { detail }) => {
                let now = self
                    .clients
                    .of(repository)?
                    .pull_request(repository, Access::Write, number)
                    .await?;
                if now.draft {
                    Err(Error::Rejected { detail })
                } else {
                    Ok(())
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Comments on an issue or pull request.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that number.
    pub async fn comment(
        &self,
        repository: &RepositoryName,
        number: u64,
        body: &str,
    ) -> Result<CommentId, Error> {
        let path = format!("/issues/{number}/comments");
        let made: WireComment = self
            .clients
            .of(repository)?
            .write(repository, Method::Post, &path, &json!({ "body": body }))
            .await?;
        Ok(CommentId(made.id))
    }

    /// Login of the account that writes at an instance.
    ///
    /// # Errors
    /// [`Error`]; the first call asks GitHub.
    pub async fn login(&self, instance: Option<&Instance>) -> Result<String, Error> {
        self.clients.on(instance)?.our_login().await
    }

    /// The comments of an issue or pull request, oldest first; at most 2,000.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that number.
    pub async fn list_comments(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<Comment>, Error> {
        let us = self.clients.of(repository)?.our_login().await?;
        let our_app = self.clients.of(repository)?.app_id();
        let mut comments = Vec::new();
        for page in 1..=MAX_COMMENT_PAGES {
            let path = format!("/issues/{number}/comments?per_page={PAGE}&page={page}");
            let found: Vec<WireComment> = self
                .clients
                .of(repository)?
                .get(repository, Access::Write, &path)
                .await?;
            let last = found.len() < PAGE;
            comments.extend(found.into_iter().map(|wire| wire.into_comment(&us, our_app)));
            if last {
                break;
            }
        }
        Ok(comments)
    }

    /// Replaces a comment's text.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it was deleted.
    pub async fn update_comment(
        &self,
        repository: &RepositoryName,
        comment: CommentId,
        body: &str,
    ) -> Result<(), Error> {
        let path = format!("/issues/comments/{comment}");
        let _: Value = self
            .clients
            .of(repository)?
            .write(repository, Method::Patch, &path, &json!({ "body": body }))
            .await?;
        Ok(())
    }

    /// Deletes a comment of our own.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it was deleted already, [`Error::Forbidden`] when it is somebody else's.
    pub async fn delete_comment(&self, repository: &RepositoryName, comment: CommentId) -> Result<(), Error> {
        let path = format!("/issues/comments/{comment}");
        self.clients.of(repository)?.delete(repository, &path).await
    }

    /// Adds labels to an issue or pull request; those that it has already stay.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that number.
    pub async fn add_labels(
        &self,
        repository: &RepositoryName,
        number: u64,
        labels: &[String],
    ) -> Result<(), Error> {
        let path = format!("/issues/{number}/labels");
        let _: Value = self
            .clients
            .of(repository)?
            .write(repository, Method::Post, &path, &json!({ "labels": labels }))
            .await?;
        Ok(())
    }

    /// Who the credentials belong to and what they may do.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when they are no good.
    pub async fn whoami(&self) -> Result<Identity, Error> {
        self.clients.on(None)?.whoami().await
    }
}

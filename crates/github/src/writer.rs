//! Write access to GitHub, with the reads that writes need. The client never repeats a write.

use std::collections::BTreeMap;

use domain::{CommitId, InstanceName, RepositoryName};
use serde_json::{Value, json};

use crate::{
    AccountIdentity, Error, GatePolicy, GitHubComment, GitHubCommentId, GitHubRepository, GitRemote,
    PullRequest, Settings,
    client::{GitHubClients, GitHubMethod, encode_path},
    permissions::AccessKind,
    wire::{WireGitHubComment, WirePullRequest, WireRef},
};

// GitHub's maximum number of entries per page.
const PAGE: usize = 100;
const MAX_COMMENT_PAGES: usize = 20;

const MARK_READY: &str = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) \
    { pullRequest { id isDraft } } }";

/// Writer of GitHub; cheap to clone. Reads are tried up to three times, writes once: after
/// [`Error::Unknown`], read the state before the next write.
#[derive(Clone, Debug)]
pub struct GitHubWriter {
    pub(crate) clients: GitHubClients,
}

impl GitHubWriter {
    /// Creates a writer of the default instance with its own connection pool, in a tokio runtime. Connects on
    /// first use.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when the private key cannot be parsed, [`Error::Rejected`] when a URL is not
    /// valid.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        Self::with_instances(Some(settings), &BTreeMap::new())
    }

    /// Creates a writer of the default instance, if it is configured, and of the named ones.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn with_instances(
        settings: Option<&Settings>,
        others: &BTreeMap<InstanceName, Settings>,
    ) -> Result<Self, Error> {
        Ok(Self {
            clients: GitHubClients::new(settings, others, "writer", None)?,
        })
    }

    /// Creates a writer that consults the gate before each request and reports the limits of each answer to
    /// it.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn gated(
        settings: Option<&Settings>,
        others: &BTreeMap<InstanceName, Settings>,
        gated: &GatePolicy,
    ) -> Result<Self, Error> {
        Ok(Self {
            clients: GitHubClients::new(settings, others, "writer", Some(gated))?,
        })
    }

    /// Returns the URL and token with which git fetches the repository.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the App has no installation on the repository.
    pub async fn fetch_remote(&self, repository: &RepositoryName) -> Result<GitRemote, Error> {
        self.clients
            .of(repository)?
            .git_remote(repository, AccessKind::Fetch)
            .await
    }

    /// Returns the URL and token with which git pushes to the repository.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the App has no installation on the repository.
    pub async fn push_remote(&self, repository: &RepositoryName) -> Result<GitRemote, Error> {
        self.clients
            .of(repository)?
            .git_remote(repository, AccessKind::Push)
            .await
    }

    /// Reads the repository's description.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it does not exist or the App has no installation there.
    pub async fn repository(&self, repository: &RepositoryName) -> Result<GitHubRepository, Error> {
        self.clients
            .of(repository)?
            .repository(repository, AccessKind::Write)
            .await
    }

    /// Reads one pull request.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no pull request has that number.
    pub async fn pull_request(&self, repository: &RepositoryName, number: u64) -> Result<PullRequest, Error> {
        self.clients
            .of(repository)?
            .pull_request(repository, AccessKind::Write, number)
            .await
    }

    /// Finds the pull request from that branch of the repository: an open one first, otherwise the newest.
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
            .find_pull_request_by_head(repository, AccessKind::Write, branch)
            .await
    }

    /// Reads the commit at the head of a branch; `None` when the branch is missing.
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
                .get::<WireRef>(repository, AccessKind::Write, &path)
                .await,
        )?;
        Ok(found.map(|found| found.object.sha))
    }

    /// Opens a pull request from a branch of the same repository.
    ///
    /// # Errors
    /// [`Error::Conflict`] when a pull request for that branch is open already, [`Error::Rejected`] when
    /// GitHub refuses it, e.g. without commits between the branches.
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
            .write(repository, GitHubMethod::Post, "/pulls", &body)
            .await?;
        Ok(made.into())
    }

    /// Ends a pull request's draft state; `node_id` is [`PullRequest::node_id`]. A pull request that is not a
    /// draft is no error.
    ///
    /// # Errors
    /// [`Error::Rejected`] when GitHub refuses, e.g. because the pull request is closed.
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
                AccessKind::MarkReady,
                MARK_READY,
                json!({ "id": node_id }),
            )
            .await
        {
            Ok(_) => Ok(()),
            Err(Error::Rejected { detail }) => {
                // GitHub also refuses a pull request that is ready already, which may be the result of an
                // earlier call.
                let now = self
                    .clients
                    .of(repository)?
                    .pull_request(repository, AccessKind::Write, number)
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

    /// Login of the account that writes at an instance.
    ///
    /// # Errors
    /// [`Error`] of the first call, which requests the login from GitHub.
    pub async fn login(&self, instance: Option<&InstanceName>) -> Result<String, Error> {
        self.clients.on(instance)?.our_login().await
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
        let us = self.clients.of(repository)?.our_login().await?;
        let our_app = self.clients.of(repository)?.app_id();
        let mut comments = Vec::new();
        for page in 1..=MAX_COMMENT_PAGES {
            let path = format!("/issues/{number}/comments?per_page={PAGE}&page={page}");
            let found: Vec<WireGitHubComment> = self
                .clients
                .of(repository)?
                .get(repository, AccessKind::Write, &path)
                .await?;
            let last = found.len() < PAGE;
            comments.extend(found.into_iter().map(|wire| wire.into_comment(&us, our_app)));
            if last {
                break;
            }
        }
        Ok(comments)
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
        let path = format!("/issues/comments/{comment}");
        let _: Value = self
            .clients
            .of(repository)?
            .write(repository, GitHubMethod::Patch, &path, &json!({ "body": body }))
            .await?;
        Ok(())
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
        self.clients.of(repository)?.delete(repository, &path).await
    }

    /// Adds labels to an issue or pull request; its present labels stay.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no issue or pull request has that number.
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
            .write(
                repository,
                GitHubMethod::Post,
                &path,
                &json!({ "labels": labels }),
            )
            .await?;
        Ok(())
    }

    /// Reads the identity and permissions of the default instance's credentials.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when GitHub refuses the credentials.
    pub async fn whoami(&self) -> Result<AccountIdentity, Error> {
        self.clients.on(None)?.whoami().await
    }
}

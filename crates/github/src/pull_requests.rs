//! Pull requests of the account that writes: opening, finding, and the draft state.

use domain::RepositoryName;
use serde_json::json;

use crate::{
    Error, PullRequest,
    client::{GitHubClients, GitHubMethod},
    permissions::AccessKind,
    wire::WirePullRequest,
};

const MARK_READY: &str = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) \
    { pullRequest { id isDraft } } }";
const BACK_TO_DRAFT: &str = "mutation($id: ID!) { convertPullRequestToDraft(input: {pullRequestId: $id}) \
    { pullRequest { id isDraft } } }";

/// Writer of pull requests; cheap to clone.
#[derive(Clone, Debug)]
pub struct PullRequestWriter {
    pub(crate) clients: GitHubClients,
}

impl PullRequestWriter {
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
        self.set_draft(repository, number, node_id, false).await
    }

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
        self.set_draft(repository, number, node_id, true).await
    }

    async fn set_draft(
        &self,
        repository: &RepositoryName,
        number: u64,
        node_id: &str,
        draft: bool,
    ) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let mutation = if draft { BACK_TO_DRAFT } else { MARK_READY };
        let variables = json!({ "id": node_id });
        match client
            .graphql(repository, AccessKind::MarkReady, mutation, variables)
            .await
        {
            // GitHub also refuses the state that the pull request already has, perhaps by an earlier call.
            Err(Error::Rejected { detail }) => {
                let now = client.pull_request(repository, AccessKind::Write, number).await?;
                if now.draft == draft {
                    Ok(())
                } else {
                    Err(Error::Rejected { detail })
                }
            }
            done => done.map(drop),
        }
    }
}

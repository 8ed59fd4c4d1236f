//! Git objects and branches over the API, so that GitHub signs the commits of an App.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use domain::{CommitId, RepositoryName};
use serde_json::{Value, json};

use crate::{
    CommitOrigin, CommitVerification, CreatedCommit, Error,
    client::{GitHubClients, GitHubMethod, encode_path},
    permissions::AccessKind,
    wire::{WireGitCommit, WireGitObject, WireNamedRef, WireRef},
};

/// Content of a path in a new tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeContent {
    /// Text that GitHub stores as a new blob.
    Text(String),
    /// Object that the repository has, by its id.
    Object(String),
    /// Removal of the path.
    Removed,
}

/// Path of a new tree that differs from the tree below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeChange {
    /// Path from the root, with `/` between folders.
    pub path: String,
    /// Mode in git's octal digits, e.g. `100755`.
    pub mode: &'static str,
    /// New content.
    pub content: TreeContent,
}

impl TreeChange {
    fn body(&self) -> Value {
        let kind = if self.mode == "160000" { "commit" } else { "blob" };
        let mut body = json!({ "path": self.path, "mode": self.mode, "type": kind });
        match &self.content {
            TreeContent::Text(text) => body["content"] = json!(text),
            TreeContent::Object(id) => body["sha"] = json!(id),
            TreeContent::Removed => body["sha"] = Value::Null,
        }
        body
    }
}

/// Writer of git objects and branches; cheap to clone.
#[derive(Clone, Debug)]
pub struct CommitWriter {
    pub(crate) clients: GitHubClients,
}

impl CommitWriter {
    /// True when GitHub signs the commits that our account creates without an author: it is an App, or the token
    /// of a workflow's job.
    ///
    /// # Errors
    /// [`Error`] of the first call, which requests the identity from GitHub.
    pub async fn are_signed_by_github(&self, repository: &RepositoryName) -> Result<bool, Error> {
        let client = self.clients.of(repository)?;
        if client.app_id().is_some() {
            return Ok(true);
        }
        // A token with scopes belongs to a user, whatever its login is.
        let us = client.whoami().await?;
        Ok(us.is_program() && us.permissions.is_empty())
    }

    /// Stores a blob and returns its id.
    ///
    /// # Errors
    /// [`Error::Rejected`] when GitHub refuses the blob, e.g. above 100 MB.
    pub async fn create_blob(&self, repository: &RepositoryName, content: &[u8]) -> Result<String, Error> {
        let body = json!({ "content": STANDARD.encode(content), "encoding": "base64" });
        let made: WireGitObject = self.post(repository, "/git/blobs", &body).await?;
        Ok(made.sha)
    }

    /// Stores the tree that follows from changes of the tree `base`, and returns its id.
    ///
    /// # Errors
    /// [`Error::Rejected`] when GitHub does not accept a change, or does not have an object.
    pub async fn create_tree(
        &self,
        repository: &RepositoryName,
        base: &str,
        changes: &[TreeChange],
    ) -> Result<String, Error> {
        let changes: Vec<Value> = changes.iter().map(TreeChange::body).collect();
        let body = json!({ "base_tree": base, "tree": changes });
        let made: WireGitObject = self.post(repository, "/git/trees", &body).await?;
        Ok(made.sha)
    }

    /// Creates a commit by our account at the present time. No branch contains it yet.
    ///
    /// # Errors
    /// [`Error::Rejected`] when GitHub does not have the tree or a parent.
    pub async fn create_commit(
        &self,
        repository: &RepositoryName,
        message: &str,
        tree: &str,
        parents: &[CommitId],
    ) -> Result<CreatedCommit, Error> {
        // An author, a committer or a date in the request would keep GitHub from signing.
        let body = json!({ "message": message, "tree": tree, "parents": parents });
        let made: WireGitCommit = self.post(repository, "/git/commits", &body).await?;
        Ok(made.into())
    }

    /// Reads GitHub's judgment about a commit; `None` when the repository does not have the commit.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn verification(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
    ) -> Result<Option<CommitVerification>, Error> {
        let found = self.fetch(repository, commit).await?;
        Ok(found.map(|found| CreatedCommit::from(found).verification))
    }

    /// Reads the origin of a commit; `None` when the repository does not have the commit.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn origin(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
    ) -> Result<Option<CommitOrigin>, Error> {
        Ok(self.fetch(repository, commit).await?.map(CommitOrigin::from))
    }

    async fn fetch(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
    ) -> Result<Option<WireGitCommit>, Error> {
        let path = format!("/git/commits/{commit}");
        let client = self.clients.of(repository)?;
        Error::none_if_missing(client.get(repository, AccessKind::Push, &path).await)
    }

    /// Creates a branch.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the branch exists, [`Error::Rejected`] when a rule forbids it.
    pub async fn create_branch(
        &self,
        repository: &RepositoryName,
        branch: &str,
        head: &CommitId,
    ) -> Result<(), Error> {
        let body = json!({ "ref": format!("refs/heads/{branch}"), "sha": head });
        self.post::<WireRef>(repository, "/git/refs", &body)
            .await
            .map(drop)
    }

    /// Moves a branch forward to a descendant of its head. GitHub refuses every other move.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the branch is missing or at another commit, or a rule forbids the move.
    pub async fn forward_branch(
        &self,
        repository: &RepositoryName,
        branch: &str,
        head: &CommitId,
    ) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/git/refs/heads/{}", encode_path(branch));
        let body = json!({ "sha": head, "force": false });
        client
            .write_as::<WireRef>(AccessKind::Push, repository, GitHubMethod::Patch, &path, &body)
            .await
            .map(drop)
    }

    /// Lists the branches whose name begins with `prefix`, with their heads.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn branches_with_prefix(
        &self,
        repository: &RepositoryName,
        prefix: &str,
    ) -> Result<BTreeMap<String, CommitId>, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/git/matching-refs/heads/{}", encode_path(prefix));
        let found: Vec<WireNamedRef> = client.get(repository, AccessKind::Push, &path).await?;
        Ok(found.into_iter().filter_map(WireNamedRef::into_branch).collect())
    }

    async fn post<T: serde::de::DeserializeOwned>(
        &self,
        repository: &RepositoryName,
        path: &str,
        body: &Value,
    ) -> Result<T, Error> {
        let client = self.clients.of(repository)?;
        client
            .write_as(AccessKind::Push, repository, GitHubMethod::Post, path, body)
            .await
    }
}

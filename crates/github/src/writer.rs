//! Write access to GitHub, with the reads that writes need. The client never repeats a write.

use std::{collections::BTreeMap, sync::Arc};

use domain::{CommitId, InstanceName, RepositoryName};

use crate::{
    AccountIdentity, CheckWriter, CommentWriter, CommitWriter, DiscussionWriter, Error, GatePolicy,
    GitHubRepository, GitRemote, IssueWriter, ProjectWriter, PullRequestWriter, ReviewWriter, Settings,
    client::{GitHubClient, GitHubClients, encode_path},
    permissions::{AccessKind, RequiredAppPermission, find_missing_permissions},
    wire::{WireRef, WireRepositoryAccess},
};

/// Writer of GitHub, with one part for each subject; cheap to clone. Reads are tried up to three times, writes
/// once: after [`Error::Unknown`], read the state before the next write.
#[derive(Clone, Debug)]
pub struct GitHubWriter {
    pub(crate) clients: GitHubClients,
    pull_requests: PullRequestWriter,
    reviews: ReviewWriter,
    issues: IssueWriter,
    comments: CommentWriter,
    discussions: DiscussionWriter,
    checks: CheckWriter,
    commits: CommitWriter,
    projects: ProjectWriter,
}

impl GitHubWriter {
    /// Creates a writer of the default instance with its own connection pool, in a tokio runtime. Connects on
    /// first use.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when the private key cannot be parsed, [`Error::Rejected`] when a URL is not
    /// valid.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        Self::with_instances(Some(settings), &BTreeMap::new(), None)
    }

    /// Creates a writer of the default instance, if it is configured, and of the named ones. With a gate, it consults
    /// the gate before each request and reports the limits of each answer to it.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn with_instances(
        settings: Option<&Settings>,
        others: &BTreeMap<InstanceName, Settings>,
        gated: Option<&GatePolicy>,
    ) -> Result<Self, Error> {
        GitHubClients::new(settings, others, "writer", gated).map(Self::of)
    }

    fn of(clients: GitHubClients) -> Self {
        Self {
            pull_requests: PullRequestWriter {
                clients: clients.clone(),
                without_drafts: Arc::default(),
            },
            reviews: ReviewWriter {
                clients: clients.clone(),
            },
            issues: IssueWriter {
                clients: clients.clone(),
            },
            comments: CommentWriter {
                clients: clients.clone(),
            },
            discussions: DiscussionWriter {
                clients: clients.clone(),
            },
            checks: CheckWriter {
                clients: clients.clone(),
            },
            commits: CommitWriter {
                clients: clients.clone(),
            },
            projects: ProjectWriter {
                clients: clients.clone(),
            },
            clients,
        }
    }

    /// Pull requests: opening, finding, and the draft state.
    pub const fn pull_requests(&self) -> &PullRequestWriter {
        &self.pull_requests
    }

    /// Reviews of pull requests, with their threads and requests.
    pub const fn reviews(&self) -> &ReviewWriter {
        &self.reviews
    }

    /// Issues, with their assignees, labels, types and sub-issues.
    pub const fn issues(&self) -> &IssueWriter {
        &self.issues
    }

    /// Comments on issues and pull requests, and reactions.
    pub const fn comments(&self) -> &CommentWriter {
        &self.comments
    }

    /// Discussions and the comments in them.
    pub const fn discussions(&self) -> &DiscussionWriter {
        &self.discussions
    }

    /// Check runs, reruns of jobs, and required checks.
    pub const fn checks(&self) -> &CheckWriter {
        &self.checks
    }

    /// Commits that GitHub creates, and the branches that contain them.
    pub const fn commits(&self) -> &CommitWriter {
        &self.commits
    }

    /// Fields of projects.
    pub const fn projects(&self) -> &ProjectWriter {
        &self.projects
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

    /// Login of the account that writes at an instance.
    ///
    /// # Errors
    /// [`Error`] of the first call, which requests the login from GitHub.
    pub async fn login(&self, instance: Option<&InstanceName>) -> Result<String, Error> {
        self.clients.on(instance)?.our_login().await
    }

    /// Reads the identity and permissions of the default instance's credentials.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when GitHub refuses the credentials.
    pub async fn whoami(&self) -> Result<AccountIdentity, Error> {
        self.clients.on(None)?.whoami().await
    }

    /// Lists those of `needed` that our account lacks in a repository, as far as GitHub reports it: the permissions
    /// of an App's installation, the role and the scopes of a user's token. GitHub reports neither the permissions of a
    /// fine-grained token nor those of a workflow's job, so these count as held.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the App has no installation on the repository, or the token does not see it.
    pub async fn missing_permissions(
        &self,
        repository: &RepositoryName,
        needed: &[RequiredAppPermission],
    ) -> Result<Vec<RequiredAppPermission>, Error> {
        let client = self.clients.of(repository)?;
        if client.app_id().is_none() {
            let can_write = can_token_write(client, repository).await?;
            return Ok(if can_write { Vec::new() } else { needed.to_vec() });
        }
        let held = client.routes().read_permissions(repository).await?;
        let held: Vec<String> = held
            .iter()
            .map(|(name, level)| format!("{name}:{level}"))
            .collect();
        Ok(find_missing_permissions(needed, &held))
    }
}

/// Returns false when GitHub reports that the token's user cannot write to the repository, or that a scope is missing.
async fn can_token_write(client: &GitHubClient, repository: &RepositoryName) -> Result<bool, Error> {
    let identity = client.fetch_identity().await?;
    if !identity.is_user {
        return Ok(true);
    }
    let access: WireRepositoryAccess = client.get(repository, AccessKind::Write, "").await?;
    Ok(access.can_write(&identity.permissions))
}

//! Read access to GitHub.

use std::collections::BTreeMap;

use domain::{InstanceName, RepositoryName};

use crate::{
    AccountIdentity, AttachmentReader, BranchRules, CheckReader, CommentReader, DeliveryReader,
    DiscussionReader, Error, GatePolicy, GitHubRepository, HealthReader, IssueReader, PullRequestReader,
    RepositoryPermission, ReviewReader, Settings,
    branch_rules::fetch_branch_rules,
    client::{GitHubClients, percent_encode},
    permissions::AccessKind,
    wire::WireCollaboratorPermission,
};

/// Reader of GitHub, with one part for each subject; cheap to clone. Each call is tried up to three times.
#[derive(Clone, Debug)]
pub struct GitHubReader {
    pub(crate) clients: GitHubClients,
    pull_requests: PullRequestReader,
    reviews: ReviewReader,
    issues: IssueReader,
    comments: CommentReader,
    discussions: DiscussionReader,
    checks: CheckReader,
    deliveries: DeliveryReader,
    health: HealthReader,
    attachments: AttachmentReader,
}

impl GitHubReader {
    /// Creates a reader of the default instance with its own connection pool, in a tokio runtime. Connects on
    /// first use.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when the private key cannot be parsed, [`Error::Rejected`] when a URL is not
    /// valid.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        Self::with_instances(Some(settings), &BTreeMap::new(), None)
    }

    /// Creates a reader of the default instance, if it is configured, and of the named ones. With a gate, it consults
    /// the gate before each request and reports the limits of each answer to it.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn with_instances(
        settings: Option<&Settings>,
        others: &BTreeMap<InstanceName, Settings>,
        gated: Option<&GatePolicy>,
    ) -> Result<Self, Error> {
        GitHubClients::new(settings, others, "reader", gated).map(Self::of)
    }

    fn of(clients: GitHubClients) -> Self {
        Self {
            pull_requests: PullRequestReader {
                clients: clients.clone(),
            },
            reviews: ReviewReader {
                clients: clients.clone(),
            },
            issues: IssueReader {
                clients: clients.clone(),
            },
            comments: CommentReader {
                clients: clients.clone(),
            },
            discussions: DiscussionReader {
                clients: clients.clone(),
            },
            checks: CheckReader {
                clients: clients.clone(),
            },
            deliveries: DeliveryReader {
                clients: clients.clone(),
            },
            health: HealthReader {
                clients: clients.clone(),
            },
            attachments: AttachmentReader {
                clients: clients.clone(),
            },
            clients,
        }
    }

    /// Pull requests: listing, finding, and their commits.
    pub const fn pull_requests(&self) -> &PullRequestReader {
        &self.pull_requests
    }

    /// Reviews of pull requests, with their requests, remarks and changed files.
    pub const fn reviews(&self) -> &ReviewReader {
        &self.reviews
    }

    /// Issues: reading and listing.
    pub const fn issues(&self) -> &IssueReader {
        &self.issues
    }

    /// Comments on issues and pull requests.
    pub const fn comments(&self) -> &CommentReader {
        &self.comments
    }

    /// Discussions and the comments in them.
    pub const fn discussions(&self) -> &DiscussionReader {
        &self.discussions
    }

    /// Checks of commits, logs of jobs, and required checks.
    pub const fn checks(&self) -> &CheckReader {
        &self.checks
    }

    /// Deliveries of webhooks to our App.
    pub const fn deliveries(&self) -> &DeliveryReader {
        &self.deliveries
    }

    /// Snapshots of what can keep a pull request from being merged.
    pub const fn health(&self) -> &HealthReader {
        &self.health
    }

    /// Files that people attach to texts.
    pub const fn attachments(&self) -> &AttachmentReader {
        &self.attachments
    }

    /// Reads the repository's description.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it does not exist or the App has no installation there.
    pub async fn repository(&self, repository: &RepositoryName) -> Result<GitHubRepository, Error> {
        self.clients
            .of(repository)?
            .repository(repository, AccessKind::Look)
            .await
    }

    /// Reads the permission of an account in the repository. GitHub answers by login; when the login is
    /// unknown or belongs to another account now, the account has [`RepositoryPermission::None`].
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn permission(
        &self,
        repository: &RepositoryName,
        login: &str,
        account: u64,
    ) -> Result<RepositoryPermission, Error> {
        let path = format!("/collaborators/{}/permission", percent_encode(login));
        let found = Error::none_if_missing(
            self.clients
                .of(repository)?
                .get::<WireCollaboratorPermission>(repository, AccessKind::Look, &path)
                .await,
        )?;
        Ok(found.map_or(RepositoryPermission::None, |found| found.of(account)))
    }

    /// Iterates over the default instance (`None`) and the named ones.
    pub fn instances(&self) -> impl Iterator<Item = Option<&InstanceName>> {
        self.clients.instances()
    }

    /// Reads the identity of an instance's credentials.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when GitHub refuses the credentials.
    pub async fn identity(&self, instance: Option<&InstanceName>) -> Result<AccountIdentity, Error> {
        self.clients.on(instance)?.whoami().await
    }

    /// Reads the identity of the default instance's credentials.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when GitHub refuses the credentials.
    pub async fn whoami(&self) -> Result<AccountIdentity, Error> {
        self.clients.on(None)?.whoami().await
    }

    /// Reads the rules of a branch, as far as our account can read them: a reader App without permission for
    /// contents reads those of rulesets.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn branch_rules(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<BranchRules, Error> {
        let client = self.clients.of(repository)?;
        let (_, rules) = fetch_branch_rules(client, repository, AccessKind::Look, branch).await?;
        Ok(rules)
    }
}

//! Read access to GitHub.

use std::collections::BTreeMap;

use domain::{CommitId, InstanceName, RepositoryName, TicketKey, Timestamp};

use crate::{
    AccountIdentity, CommitCheck, ETag, Error, GatePolicy, GitHubRepository, HookDelivery, PullRequest,
    PullRequestPoll, PullRequestRemark, RepositoryPermission, Settings,
    client::{GitHubClients, percent_encode},
    permissions::AccessKind,
    wire::{
        WireCheckRun, WireCheckRuns, WireCollaboratorPermission, WireCombinedStatus, WireDelivery,
        WireDeliveryDetail, WirePullRequest, WireRemark,
    },
};

// GitHub's maximum number of entries per page.
const PAGE: usize = 100;
const MAX_CHECK_PAGES: usize = 3;
const MAX_PULL_REQUEST_PAGES: usize = 5;
const MAX_DELIVERY_PAGES: usize = 10;

/// Reader of GitHub; cheap to clone. Each call is tried up to three times.
#[derive(Clone, Debug)]
pub struct GitHubReader {
    pub(crate) clients: GitHubClients,
}

impl GitHubReader {
    /// Creates a reader of the default instance with its own connection pool, in a tokio runtime. Connects on
    /// first use.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when the private key cannot be parsed, [`Error::Rejected`] when a URL is not
    /// valid.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        Self::with_instances(Some(settings), &BTreeMap::new())
    }

    /// Creates a reader of the default instance, if it is configured, and of the named ones.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn with_instances(
        settings: Option<&Settings>,
        others: &BTreeMap<InstanceName, Settings>,
    ) -> Result<Self, Error> {
        Ok(Self {
            clients: GitHubClients::new(settings, others, "reader", None)?,
        })
    }

    /// Creates a reader that consults the gate before each request and reports the limits of each answer to
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
            clients: GitHubClients::new(settings, others, "reader", Some(gated))?,
        })
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

    /// Lists the latest checks of a commit: check runs and commit statuses, at most 300 of each, without
    /// ours and without the jobs of Journeyman's GitHub Action.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the commit does not exist.
    pub async fn checks(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
    ) -> Result<Vec<CommitCheck>, Error> {
        self.checks_of(repository, commit.as_str()).await
    }

    pub(crate) async fn checks_of(
        &self,
        repository: &RepositoryName,
        commit: &str,
    ) -> Result<Vec<CommitCheck>, Error> {
        // GitHub lists check runs and commit statuses separately, and a commit may have both.
        let mut checks = Vec::new();
        for page in 1..=MAX_CHECK_PAGES {
            let path = format!("/commits/{commit}/check-runs?per_page={PAGE}&page={page}");
            let found: WireCheckRuns = self
                .clients
                .of(repository)?
                .get_again(repository, AccessKind::Look, &path)
                .await?;
            // Counted before our runs are removed, because they fill GitHub's page too.
            let last = found.check_runs.len() < PAGE;
            let others = found.check_runs.into_iter().filter(WireCheckRun::is_of_ci);
            checks.extend(others.map(CommitCheck::from));
            if last {
                break;
            }
        }
        for page in 1..=MAX_CHECK_PAGES {
            let path = format!("/commits/{commit}/status?per_page={PAGE}&page={page}");
            let found: WireCombinedStatus = self
                .clients
                .of(repository)?
                .get_again(repository, AccessKind::Look, &path)
                .await?;
            let last = found.statuses.len() < PAGE;
            checks.extend(found.statuses.into_iter().map(CommitCheck::from));
            if last {
                break;
            }
        }
        Ok(checks)
    }

    /// Reads one pull request.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no pull request has that number.
    pub async fn pull_request(&self, repository: &RepositoryName, number: u64) -> Result<PullRequest, Error> {
        self.clients
            .of(repository)?
            .pull_request(repository, AccessKind::Look, number)
            .await
    }

    /// Lists open pull requests of all authors that name the ticket in title, head branch or description.
    /// Searches the 500 newest.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn pull_requests_mentioning(
        &self,
        repository: &RepositoryName,
        ticket: &TicketKey,
    ) -> Result<Vec<PullRequest>, Error> {
        let mut matches = Vec::new();
        for page in 1..=MAX_PULL_REQUEST_PAGES {
            let path = format!("/pulls?state=open&per_page={PAGE}&page={page}");
            let found: Vec<WirePullRequest> = self
                .clients
                .of(repository)?
                .get_again(repository, AccessKind::Look, &path)
                .await?;
            let last = found.len() < PAGE;
            let found = found.into_iter().map(PullRequest::from);
            matches.extend(found.filter(|candidate| candidate.mentions(repository, ticket)));
            if last {
                break;
            }
        }
        Ok(matches)
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

    /// Lists closed pull requests, merged or not, that changed at or after `since`; at most the 500 latest,
    /// newest first.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn closed_pull_requests_since(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
    ) -> Result<Vec<PullRequest>, Error> {
        let mut closed = Vec::new();
        for page in 1..=MAX_PULL_REQUEST_PAGES {
            let path = format!("/pulls?state=closed&sort=updated&direction=desc&per_page={PAGE}&page={page}");
            let found: Vec<WirePullRequest> = self
                .clients
                .of(repository)?
                .get_again(repository, AccessKind::Look, &path)
                .await?;
            let is_full = found.len() == PAGE;
            let seen = found.len();
            let before = closed.len();
            let found = found.into_iter().map(PullRequest::from);
            closed.extend(found.filter(|candidate| candidate.updated_at.is_none_or(|at| at >= since)));
            // The list is sorted by change, so the first older entry ends the search.
            if !is_full || closed.len() - before < seen {
                break;
            }
        }
        Ok(closed)
    }

    /// Lists pull requests, open and closed, that changed at or after `since`; at most the 500 latest.
    ///
    /// With the `ETag` of the previous poll, an unchanged answer costs one request and nothing of the rate
    /// limit. A push, a close, a merge and a comment change a pull request; its checks do not.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn pull_requests_changed_since(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
        known: Option<&ETag>,
    ) -> Result<PullRequestPoll, Error> {
        let path = |page| format!("/pulls?state=all&sort=updated&direction=desc&per_page={PAGE}&page={page}");
        // Every change moves its pull request to the first page, so the ETag of that page covers all changes.
        let first: Option<(Vec<WirePullRequest>, _)> = self
            .clients
            .of(repository)?
            .get_unless(repository, AccessKind::Look, &path(1), known)
            .await?;
        let Some((mut found, etag)) = first else {
            return Ok(PullRequestPoll::Unchanged);
        };
        let (mut changed, mut page) = (Vec::new(), 1);
        let is_complete = loop {
            let seen = found.len();
            let before = changed.len();
            let found_now = found.into_iter().map(PullRequest::from);
            changed.extend(found_now.filter(|candidate| candidate.updated_at.is_none_or(|at| at >= since)));
            // The list is sorted by change, so the first older entry ends the search.
            if seen < PAGE || changed.len() - before < seen {
                break true;
            }
            if page == MAX_PULL_REQUEST_PAGES {
                break false;
            }
            page += 1;
            // Further pages are read without an ETag: the caller keeps only that of the first page.
            found = self
                .clients
                .of(repository)?
                .get(repository, AccessKind::Look, &path(page))
                .await?;
        };
        Ok(PullRequestPoll::Changed {
            pull_requests: changed,
            etag,
            is_complete,
        })
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
            .find_pull_request_by_head(repository, AccessKind::Look, branch)
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

    /// Lists an instance's attempts to deliver webhooks to our App since then, newest first; at most the
    /// 1,000 latest.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without an App: a token has no deliveries.
    pub async fn hook_deliveries(
        &self,
        instance: Option<&InstanceName>,
        since: Timestamp,
    ) -> Result<Vec<HookDelivery>, Error> {
        let mut deliveries: Vec<HookDelivery> = Vec::new();
        let mut path = format!("/app/hook/deliveries?per_page={PAGE}");
        for _ in 0..MAX_DELIVERY_PAGES {
            let (found, next) = self
                .clients
                .on(instance)?
                .get_as_app::<Vec<WireDelivery>>(&path)
                .await?;
            for wire in found {
                let delivery = HookDelivery::try_from(wire)?;
                // The list is newest first, so all further deliveries are older.
                if delivery.delivered_at < since {
                    return Ok(deliveries);
                }
                deliveries.push(delivery);
            }
            match next {
                // Deliveries have cursors instead of page numbers, so the next page is known only from the
                // answer.
                Some(query) => path = format!("/app/hook/deliveries?{query}"),
                None => break,
            }
        }
        Ok(deliveries)
    }

    /// Reads the webhook body of one attempt of [`Self::hook_deliveries`], as JSON.
    ///
    /// # Errors
    /// [`Error::NotFound`] when GitHub no longer stores it, [`Error::Unauthorized`] without an App.
    pub async fn hook_payload(
        &self,
        instance: Option<&InstanceName>,
        id: u64,
    ) -> Result<serde_json::Value, Error> {
        let path = format!("/app/hook/deliveries/{id}");
        let (found, _) = self
            .clients
            .on(instance)?
            .get_as_app::<WireDeliveryDetail>(&path)
            .await?;
        Ok(found.request.payload)
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
}

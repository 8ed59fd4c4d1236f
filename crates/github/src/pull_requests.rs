//! Pull requests: listing, finding, opening, and the draft state.

use std::{collections::HashSet, sync::Arc};

use domain::{CommitId, RepositoryName, TicketKey, Timestamp};
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    ETag, Error, PullRequest, PullRequestPoll,
    client::{GitHubClients, GitHubMethod},
    permissions::AccessKind,
    progress_note::{add_progress_note, has_progress_note, remove_progress_note},
    transport::PAGE,
    wire::{WireAuthoredCommit, WireCommit, WirePullRequest},
};

const MAX_PULL_REQUEST_PAGES: usize = 5;
// GitHub lists at most 250 commits of a pull request, thus three pages.
pub(crate) const MAX_COMMIT_PAGES: usize = 3;

const MARK_READY: &str = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) \
    { pullRequest { id isDraft } } }";
const BACK_TO_DRAFT: &str = "mutation($id: ID!) { convertPullRequestToDraft(input: {pullRequestId: $id}) \
    { pullRequest { id isDraft } } }";

// GitHub refuses another head than the expected one, so no push of a person is lost.
const UPDATE_BRANCH: &str = "mutation($id: ID!, $head: GitObjectID!, $method: PullRequestBranchUpdateMethod!) { \
    updatePullRequestBranch(input: {pullRequestId: $id, expectedHeadOid: $head, updateMethod: $method}) \
    { pullRequest { number headRefOid } } }";

/// Way in which GitHub brings a head branch up to date with its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchUpdate {
    /// A merge commit.
    Merge,
    /// New copies of the commits on top of the base.
    Rebase,
}

/// Reader of pull requests and their commits; cheap to clone.
#[derive(Clone, Debug)]
pub struct PullRequestReader {
    pub(crate) clients: GitHubClients,
}

impl PullRequestReader {
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
        let client = self.clients.of(repository)?;
        let found: Vec<WirePullRequest> = client
            .list_again(repository, "/pulls?state=open", MAX_PULL_REQUEST_PAGES)
            .await?;
        let found = found.into_iter().map(PullRequest::from);
        Ok(found
            .filter(|candidate| candidate.mentions(repository, ticket))
            .collect())
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

    /// Lists the commits of a pull request, oldest first; GitHub lists at most 250.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the pull request is missing.
    pub async fn pull_request_commits(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<CommitId>, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/pulls/{number}/commits");
        let found: Vec<WireCommit> = client.list_again(repository, &path, MAX_COMMIT_PAGES).await?;
        Ok(found.into_iter().map(|commit| commit.sha).collect())
    }
}

/// Writer of pull requests; cheap to clone.
#[derive(Clone, Debug)]
pub struct PullRequestWriter {
    pub(crate) clients: GitHubClients,
    /// Repositories for which GitHub refused a draft. A restart forgets them, at the price of one more refused
    /// request for each.
    pub(crate) without_drafts: Arc<Mutex<HashSet<RepositoryName>>>,
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

    /// Opens a draft. In a repository without drafts it is open for review at once, and `note` precedes its
    /// description.
    ///
    /// # Errors
    /// As for [`Self::create_pull_request`].
    pub async fn create_draft(
        &self,
        repository: &RepositoryName,
        head: &str,
        base: &str,
        title: &str,
        body: &str,
        note: &str,
    ) -> Result<PullRequest, Error> {
        if !self.without_drafts.lock().contains(repository) {
            match self
                .create_pull_request(repository, head, base, title, body, true)
                .await
            {
                Err(error) if error.is_about_missing_drafts() => {
                    tracing::info!(%repository, "the repository has no draft pull requests");
                    self.without_drafts.lock().insert(repository.clone());
                }
                done => return done,
            }
        }
        let body = add_progress_note(body, note);
        self.create_pull_request(repository, head, base, title, &body, false)
            .await
    }

    /// Ends a pull request's draft state, or removes the note that replaces it. A pull request that is ready
    /// already is a success.
    ///
    /// # Errors
    /// [`Error::Rejected`] when GitHub refuses, e.g. because the pull request is closed.
    pub async fn mark_ready(
        &self,
        repository: &RepositoryName,
        pull_request: &PullRequest,
    ) -> Result<(), Error> {
        let (number, body) = (pull_request.number, &pull_request.body);
        if has_progress_note(body) {
            return self
                .set_description(repository, number, &remove_progress_note(body))
                .await;
        }
        self.set_draft(repository, number, &pull_request.node_id, false)
            .await
    }

    /// Brings the head branch up to date with its base and returns the new head; `node_id` is
    /// [`PullRequest::node_id`], `head` the expected head.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the head moved, is up to date, is queued for a merge or conflicts with the base;
    /// [`Error::Unknown`] when GitHub may have updated it.
    pub async fn update_branch(
        &self,
        repository: &RepositoryName,
        node_id: &str,
        head: &CommitId,
        way: BranchUpdate,
    ) -> Result<CommitId, Error> {
        let method = match way {
            BranchUpdate::Merge => "MERGE",
            BranchUpdate::Rebase => "REBASE",
        };
        let variables = json!({ "id": node_id, "head": head, "method": method });
        let client = self.clients.of(repository)?;
        let data = client
            .graphql(repository, AccessKind::MarkReady, UPDATE_BRANCH, variables)
            .await?;
        let new = data["updatePullRequestBranch"]["pullRequest"]["headRefOid"].as_str();
        new.and_then(|new| new.parse().ok())
            .ok_or_else(|| Error::Unknown {
                detail: "the answer names no head".to_owned(),
                source: None,
            })
    }

    /// Lists the addresses of the authors of a pull request's commits; empty for more commits than one page has.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the pull request is missing.
    pub async fn commit_authors(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<String>, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/pulls/{number}/commits?per_page={PAGE}");
        let found: Vec<WireAuthoredCommit> = client.get(repository, AccessKind::Write, &path).await?;
        if found.len() >= PAGE {
            return Ok(Vec::new());
        }
        Ok(found.into_iter().map(WireAuthoredCommit::into_address).collect())
    }

    /// Converts a pull request back to a draft; one that is a draft already is a success. In a repository
    /// without drafts, `note` precedes its description instead.
    ///
    /// # Errors
    /// [`Error::Unknown`] when GitHub may have converted it; otherwise any [`Error`].
    pub async fn back_to_draft(
        &self,
        repository: &RepositoryName,
        pull_request: &PullRequest,
        note: &str,
    ) -> Result<(), Error> {
        let (number, body) = (pull_request.number, &pull_request.body);
        match self
            .set_draft(repository, number, &pull_request.node_id, true)
            .await
        {
            Err(error) if error.is_about_missing_drafts() => {
                self.set_description(repository, number, &add_progress_note(body, note))
                    .await
            }
            done => done,
        }
    }

    async fn set_description(
        &self,
        repository: &RepositoryName,
        number: u64,
        body: &str,
    ) -> Result<(), Error> {
        let path = format!("/pulls/{number}");
        let changed: Result<WirePullRequest, Error> = self
            .clients
            .of(repository)?
            .write(repository, GitHubMethod::Patch, &path, &json!({ "body": body }))
            .await;
        changed.map(drop)
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

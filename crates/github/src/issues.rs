//! Issues: reading, listing, closing, assigning, labels and types.

use std::collections::BTreeSet;

use domain::{RepositoryName, Timestamp};
use serde::Deserialize;
use serde_json::json;

use crate::{
    ETag, Error, GitHubIssue, IssuePoll, ListedIssue,
    client::{GitHubClients, GitHubMethod, percent_encode},
    permissions::AccessKind,
    transport::PAGE,
    wire::{WireIssueData, WireIssueStub},
};

// One query replaces four REST calls; REST also does not report who edited the text. Each list holds
// the latest 100: comments and events oldest first, edits newest first.
const ISSUE: &str = "query($owner: String!, $name: String!, $number: Int!) { \
    repository(owner: $owner, name: $name) { issue(number: $number) { \
    title body url state locked activeLockReason createdAt author { __typename login ... on User { databaseId } ... on Bot { databaseId } } \
    labels(first: 100) { nodes { name } } assignees(first: 20) { nodes { login } } \
    userContentEdits(first: 100) { nodes { editedAt editor { __typename login ... on User { databaseId } ... on Bot { databaseId } } } } \
    comments(last: 100) { nodes { databaseId body createdAt lastEditedAt author { __typename login ... on User { databaseId } ... on Bot { databaseId } } } } \
    timelineItems(last: 100, itemTypes: [ASSIGNED_EVENT, LABELED_EVENT, RENAMED_TITLE_EVENT]) { nodes { __typename \
    ... on AssignedEvent { id createdAt actor { __typename login ... on User { databaseId } ... on Bot { databaseId } } assignee { __typename ... on Actor { login } } } \
    ... on LabeledEvent { id createdAt actor { __typename login ... on User { databaseId } ... on Bot { databaseId } } label { name } } \
    ... on RenamedTitleEvent { id createdAt actor { __typename login ... on User { databaseId } ... on Bot { databaseId } } } } } } } }";

const MAX_ISSUE_PAGES: usize = 10;

/// State by which issues are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssueListState {
    /// Issues that are not closed.
    Open,
    /// Issues that are closed, for any reason.
    Closed,
    /// Issues in both states that changed at or after an instant.
    ChangedSince(Timestamp),
}

#[derive(Deserialize)]
struct WireIssueNumber {
    number: u64,
}

#[derive(Deserialize)]
struct WireTyped {
    /// Absent for issues in repositories of users, which have no types.
    #[serde(rename = "type", default)]
    issue_type: Option<WireType>,
}

#[derive(Deserialize)]
struct WireType {
    name: String,
}

/// Reader of issues; cheap to clone.
#[derive(Clone, Debug)]
pub struct IssueReader {
    pub(crate) clients: GitHubClients,
}

impl IssueReader {
    /// Reads an issue with its history; of comments, edits and events the latest 100 each.
    ///
    /// # Errors
    /// [`Error::Transferred`] and [`Error::Deleted`] when the issue left its place; [`Error::NotFound`] when no issue has
    /// that number: it may be a pull request, or moved to a place that the account does not see.
    pub async fn issue(&self, repository: &RepositoryName, number: u64) -> Result<GitHubIssue, Error> {
        let client = self.clients.of(repository)?;
        let read = client
            .query(repository, AccessKind::Look, ISSUE, json!({ "number": number }))
            .await;
        let data = match read {
            Err(Error::NotFound { what }) => {
                return Err(self.explain_absence(repository, number, what).await);
            }
            read => read?,
        };
        let data: WireIssueData = serde_json::from_value(data).map_err(|error| Error::Malformed {
            // The serde message would quote the issue's text, so that only the class of the error is kept.
            detail: format!("the query of an issue, {:?} error", error.classify()),
        })?;
        let issue = data.repository.and_then(|repository| repository.issue);
        issue.map(GitHubIssue::from).ok_or_else(|| Error::NotFound {
            what: format!("issue {number}"),
        })
    }

    /// Returns the reason why GraphQL has no issue of this number. REST alone reports a transfer and a deletion.
    async fn explain_absence(&self, repository: &RepositoryName, number: u64, what: String) -> Error {
        match self.check_presence(repository, number, None).await {
            // Pull requests are among the issues of REST alone.
            Ok(_) | Err(Error::NotFound { .. }) => Error::NotFound { what },
            Err(error) => error,
        }
    }

    /// Checks that an issue or pull request is still at its place, and returns the `ETag` for the next check. With the
    /// `ETag` of the previous check, an unchanged answer costs nothing of the rate limit.
    ///
    /// # Errors
    /// [`Error::Transferred`] when it moved, [`Error::Deleted`] when it was deleted, [`Error::NotFound`] when it does not
    /// exist or moved to a place that the account does not see.
    pub async fn check_presence(
        &self,
        repository: &RepositoryName,
        number: u64,
        known: Option<&ETag>,
    ) -> Result<Option<ETag>, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}");
        let found: Option<(WireIssueNumber, _)> = client
            .get_unless(repository, AccessKind::Look, &path, known)
            .await?;
        match found {
            None => Ok(known.cloned()),
            Some((issue, etag)) if issue.number == number => Ok(etag),
            Some(_) => Err(Error::Malformed {
                detail: "the answer is about another issue".to_owned(),
            }),
        }
    }

    /// Lists the open issues, latest change first: those among the 100 issues and pull requests that changed last, and
    /// with `since` all that changed at or after it, among the 1,000 that changed last. With the `ETag` of the previous
    /// poll, an unchanged answer costs nothing of the rate limit.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn open_issues(
        &self,
        repository: &RepositoryName,
        since: Option<Timestamp>,
        known: Option<&ETag>,
    ) -> Result<IssuePoll, Error> {
        let path = format!("/issues?state=open&sort=updated&direction=desc&per_page={PAGE}");
        let client = self.clients.of(repository)?;
        // Every change moves its issue to the first page, so the ETag of that page covers all changes.
        let first: Option<(Vec<WireIssueStub>, _)> = client
            .get_unless(repository, AccessKind::Look, &path, known)
            .await?;
        let Some((mut found, etag)) = first else {
            return Ok(IssuePoll::Unchanged);
        };
        let (mut issues, mut numbers, mut page) = (Vec::new(), BTreeSet::new(), 1);
        loop {
            let is_changed = |last: &WireIssueStub| since.is_some_and(|since| last.is_changed_since(since));
            let has_more = found.len() == PAGE && found.last().is_some_and(is_changed);
            // A change between two reads moves the last issue of a page to the next one.
            let stubs = found.into_iter().filter_map(WireIssueStub::into_stub);
            issues.extend(stubs.filter(|stub| numbers.insert(stub.number)));
            if !has_more {
                break;
            }
            if page == MAX_ISSUE_PAGES {
                tracing::warn!(%repository, "too many issues changed since the last poll; the oldest changes are left out");
                break;
            }
            page += 1;
            let next = format!("{path}&page={page}");
            found = client.get(repository, AccessKind::Look, &next).await?;
        }
        Ok(IssuePoll::Changed { issues, etag })
    }

    /// Lists the issues of a repository, latest change first. GitHub lists 100 issues and pull requests
    /// together; the pull requests are removed.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the repository is missing or invisible to our account.
    pub async fn list_issues(
        &self,
        repository: &RepositoryName,
        state: IssueListState,
    ) -> Result<Vec<ListedIssue>, Error> {
        let state = match state {
            IssueListState::Open => "open".to_owned(),
            IssueListState::Closed => "closed".to_owned(),
            IssueListState::ChangedSince(since) => {
                // GitHub's parameter `since` has a resolution of one second.
                format!("all&since={}", Timestamp::from_unix_ms(since.unix_s() * 1000))
            }
        };
        let path = format!("/issues?state={state}&sort=updated&direction=desc&per_page={PAGE}");
        let client = self.clients.of(repository)?;
        let found: Vec<WireIssueStub> = client.get(repository, AccessKind::Look, &path).await?;
        Ok(found.into_iter().filter_map(WireIssueStub::into_listed).collect())
    }
}

/// Writer of issues; cheap to clone.
#[derive(Clone, Debug)]
pub struct IssueWriter {
    pub(crate) clients: GitHubClients,
}

impl IssueWriter {
    /// Reads whether an issue is open.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no issue has that number.
    pub async fn is_issue_open(&self, repository: &RepositoryName, number: u64) -> Result<bool, Error> {
        #[derive(serde::Deserialize)]
        struct WireIssueState {
            state: String,
        }
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}");
        let found: WireIssueState = client.get(repository, AccessKind::Write, &path).await?;
        Ok(found.state == "open")
    }

    /// Closes an issue as completed; a closed issue stays unchanged.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no issue has that number.
    pub async fn close_issue(&self, repository: &RepositoryName, number: u64) -> Result<(), Error> {
        let body = json!({ "state": "closed", "state_reason": "completed" });
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}");
        client.send(repository, GitHubMethod::Patch, &path, &body).await
    }

    /// Reads the logins of an issue's assignees.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no issue has that number.
    pub async fn assignees(&self, repository: &RepositoryName, number: u64) -> Result<Vec<String>, Error> {
        #[derive(serde::Deserialize)]
        struct AssigneeLogin {
            login: String,
        }
        #[derive(serde::Deserialize)]
        struct WireAssignees {
            assignees: Vec<AssigneeLogin>,
        }
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}");
        let found: WireAssignees = client.get(repository, AccessKind::Write, &path).await?;
        Ok(found.assignees.into_iter().map(|one| one.login).collect())
    }

    /// Assigns an issue to an account. Returns whether the account is an assignee now: GitHub skips accounts
    /// that it cannot assign, Apps among them, without an error.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no issue has that number.
    pub async fn assign(&self, repository: &RepositoryName, number: u64, login: &str) -> Result<bool, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}/assignees");
        let body = json!({ "assignees": [login] });
        client.send(repository, GitHubMethod::Post, &path, &body).await?;
        let now = self.assignees(repository, number).await?;
        Ok(now.iter().any(|one| one.eq_ignore_ascii_case(login)))
    }

    /// Removes an assignee from an issue; an account that is not assigned is no error.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no issue has that number.
    pub async fn unassign(&self, repository: &RepositoryName, number: u64, login: &str) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}/assignees");
        let body = json!({ "assignees": [login] });
        client.delete(repository, &path, Some(&body)).await
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
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}/labels");
        let body = json!({ "labels": labels });
        client.send(repository, GitHubMethod::Post, &path, &body).await
    }

    /// Removes a label from an issue or pull request; a missing label is no error.
    ///
    /// # Errors
    /// [`Error`] when GitHub refuses.
    pub async fn remove_label(
        &self,
        repository: &RepositoryName,
        number: u64,
        label: &str,
    ) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}/labels/{}", percent_encode(label));
        Error::none_if_missing(client.delete(repository, &path, None).await).map(drop)
    }

    /// Reads the type of an issue.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no issue has that number.
    pub async fn issue_type(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Option<String>, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}");
        let found: WireTyped = client.get(repository, AccessKind::Write, &path).await?;
        Ok(found.issue_type.map(|known| known.name))
    }

    /// Sets the type of an issue and replaces the previous one.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no issue has that number, [`Error::Rejected`] when the organization has no
    /// such type or the repository belongs to no organization.
    pub async fn set_issue_type(
        &self,
        repository: &RepositoryName,
        number: u64,
        name: &str,
    ) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}");
        let body = json!({ "type": name });
        let made: WireTyped = client
            .write(repository, GitHubMethod::Patch, &path, &body)
            .await?;
        let is_set = made
            .issue_type
            .is_some_and(|known| known.name.eq_ignore_ascii_case(name));
        // GitHub ignores the field without an error when the account has no push permission.
        is_set.then_some(()).ok_or_else(|| Error::Rejected {
            detail: "the issue keeps its type; only an account that may push sets it".to_owned(),
        })
    }
}

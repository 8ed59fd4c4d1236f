//! Issues that Journeyman opens, and their sub-issues.

use domain::RepositoryName;
use serde::Deserialize;
use serde_json::json;

use crate::{
    Error, IssueWriter,
    client::{GitHubMethod, percent_encode},
    permissions::AccessKind,
    transport::PAGE,
};

/// Content of an issue to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewIssue {
    /// Title in one line.
    pub title: String,
    /// Text in Markdown.
    pub body: String,
    /// Labels; GitHub creates those that the repository lacks.
    pub labels: Vec<String>,
}

/// Issue that our account opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedIssue {
    /// Id that the sub-issue endpoints take instead of the number.
    pub id: u64,
    /// Number in its repository.
    pub number: u64,
    /// Link to its page.
    pub url: String,
}

#[derive(Deserialize)]
struct WireOpened {
    id: u64,
    number: u64,
    html_url: String,
    #[serde(default)]
    body: Option<String>,
}

impl From<WireOpened> for OpenedIssue {
    fn from(wire: WireOpened) -> Self {
        Self {
            id: wire.id,
            number: wire.number,
            url: wire.html_url,
        }
    }
}

impl IssueWriter {
    /// Opens an issue. A second call opens a second issue: call [`Self::find_our_issue`] first.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the repository is missing, [`Error::Rejected`] when GitHub refuses the text.
    pub async fn create_issue(
        &self,
        repository: &RepositoryName,
        issue: &NewIssue,
    ) -> Result<OpenedIssue, Error> {
        let body = json!({ "title": issue.title, "body": issue.body, "labels": issue.labels });
        let client = self.clients.of(repository)?;
        let made: WireOpened = client
            .write(repository, GitHubMethod::Post, "/issues", &body)
            .await?;
        Ok(made.into())
    }

    /// Finds the oldest issue of our account whose text ends in `ending`, open or closed, among the 100
    /// newest. GitHub's lists show a new issue some seconds late.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn find_our_issue(
        &self,
        repository: &RepositoryName,
        ending: &str,
    ) -> Result<Option<OpenedIssue>, Error> {
        let client = self.clients.of(repository)?;
        // Another account could copy the ending, so the list is restricted to our issues.
        let us = client.our_login().await?;
        let path = format!(
            "/issues?creator={}&state=all&sort=created&direction=desc&per_page={PAGE}",
            percent_encode(&us)
        );
        let found: Vec<WireOpened> = client.get(repository, AccessKind::Write, &path).await?;
        // The end of the text only: text above may be a quotation of others with any content.
        let has = |issue: &WireOpened| {
            let body = issue.body.as_deref().unwrap_or_default();
            body.trim_end().ends_with(ending)
        };
        // The list is newest first, so the last match is the oldest issue.
        Ok(found.into_iter().rfind(has).map(OpenedIssue::from))
    }

    /// Reads the id and number of an issue, as sub-issues need them.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no issue has that number.
    pub async fn opened_issue(&self, repository: &RepositoryName, number: u64) -> Result<OpenedIssue, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}");
        let found: WireOpened = client.get(repository, AccessKind::Write, &path).await?;
        Ok(found.into())
    }

    /// Lists the numbers of an issue's sub-issues; at most 100, which is GitHub's own limit.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no issue has that number.
    pub async fn sub_issues(&self, repository: &RepositoryName, parent: u64) -> Result<Vec<u64>, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{parent}/sub_issues?per_page={PAGE}");
        let found: Vec<WireOpened> = client.get(repository, AccessKind::Write, &path).await?;
        Ok(found.into_iter().map(|issue| issue.number).collect())
    }

    /// Makes the issue with the id `part` ([`OpenedIssue::id`]) a sub-issue of the issue with the number
    /// `parent`.
    ///
    /// # Errors
    /// [`Error::NotFound`] when one of them is missing, [`Error::Rejected`] when it is a sub-issue already or
    /// would contain itself.
    pub async fn add_sub_issue(
        &self,
        repository: &RepositoryName,
        parent: u64,
        part: u64,
    ) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{parent}/sub_issues");
        let body = json!({ "sub_issue_id": part });
        client.send(repository, GitHubMethod::Post, &path, &body).await
    }
}

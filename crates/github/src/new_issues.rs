//! Issues that we open, and how they belong to one another.

use domain::RepositoryName;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Error, Writer,
    client::{Method, encode},
    permissions::Access,
};

const PAGE: usize = 100;

/// An issue to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewIssue {
    /// Its one-line title.
    pub title: String,
    /// Markdown.
    pub body: String,
    /// Labels; GitHub makes those that the repository does not have.
    pub labels: Vec<String>,
}

/// An issue that we opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedIssue {
    /// What the interface of sub-issues calls it by.
    pub id: u64,
    /// Its number in the repository.
    pub number: u64,
    /// Link for people.
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

impl Writer {
    /// Opens an issue. A second call opens a second one: look with [`Self::find_our_issue`] before.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such repository, [`Error::Rejected`] when GitHub refuses
    /// the text.
    pub async fn create_issue(
        &self,
        repository: &RepositoryName,
        issue: &NewIssue,
    ) -> Result<OpenedIssue, Error> {
        let body = json!({ "title": issue.title, "body": issue.body, "labels": issue.labels });
        let client = self.clients.of(repository)?;
        let made: WireOpened = client.write(repository, Method::Post, "/issues", &body).await?;
        Ok(made.into())
    }

    /// The oldest issue of our account whose text ends in this, open or closed, among the 100 newest. Text above may be
    /// quoted from others and hold anything. Lists of GitHub show an issue some seconds after it was opened.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn find_our_issue(
        &self,
        repository: &RepositoryName,
        ending: &str,
    ) -> Result<Option<OpenedIssue>, Error> {
        let client = self.clients.of(repository)?;
        let us = client.our_login().await?;
        let path = format!(
            "/issues?creator={}&state=all&sort=created&direction=desc&per_page={PAGE}",
            encode(&us)
        );
        let found: Vec<WireOpened> = client.get(repository, Access::Write, &path).await?;
        let has = |issue: &WireOpened| {
            let body = issue.body.as_deref().unwrap_or_default();
            body.trim_end().ends_with(ending)
        };
        Ok(found.into_iter().rfind(has).map(OpenedIssue::from))
    }

    /// The issue with that number, as far as sub-issues need it.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that number.
    pub async fn opened_issue(&self, repository: &RepositoryName, number: u64) -> Result<OpenedIssue, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}");
        let found: WireOpened = client.get(repository, Access::Write, &path).await?;
        Ok(found.into())
    }

    /// The numbers of an issue's sub-issues; at most 100, which is GitHub's own limit.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that number.
    pub async fn sub_issues(&self, repository: &RepositoryName, parent: u64) -> Result<Vec<u64>, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{parent}/sub_issues?per_page={PAGE}");
        let found: Vec<WireOpened> = client.get(repository, Access::Write, &path).await?;
        Ok(found.into_iter().map(|issue| issue.number).collect())
    }

    /// Makes an issue, by its id ([`OpenedIssue::id`]), a part of another one.
    ///
    /// # Errors
    /// [`Error::NotFound`] when one of them is not there, [`Error::Rejected`] when it is a part of an issue already or
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
        let _: Value = client.write(repository, Method::Post, &path, &body).await?;
        Ok(())
    }
}

//! Issue types: names from a list that the organization maintains.

use domain::RepositoryName;
use serde::Deserialize;
use serde_json::json;

use crate::{Error, GitHubWriter, client::GitHubMethod, permissions::AccessKind};

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

impl GitHubWriter {
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

//! The type of an issue: a name out of the list that its organisation keeps.

use domain::RepositoryName;
use serde::Deserialize;
use serde_json::json;

use crate::{Error, Writer, client::Method, permissions::Access};

#[derive(Deserialize)]
struct WireTyped {
    /// Issues of people's own repositories have none.
    #[serde(rename = "type", default)]
    issue_type: Option<WireType>,
}

#[derive(Deserialize)]
struct WireType {
    name: String,
}

impl Writer {
    /// The type of an issue.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that number.
    pub async fn issue_type(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Option<String>, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}");
        let found: WireTyped = client.get(repository, Access::Write, &path).await?;
        Ok(found.issue_type.map(|known| known.name))
    }

    /// Gives an issue a type, in the place of the one that it has.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that number, [`Error::Rejected`] when its organisation has no such type,
    /// or no organisation has the repository.
    pub async fn set_issue_type(
        &self,
        repository: &RepositoryName,
        number: u64,
        name: &str,
    ) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}");
        let body = json!({ "type": name });
        let made: WireTyped = client.write(repository, Method::Patch, &path, &body).await?;
        let is_set = made
            .issue_type
            .is_some_and(|known| known.name.eq_ignore_ascii_case(name));
        // GitHub drops it without a word when the account may not push.
        is_set.then_some(()).ok_or_else(|| Error::Rejected {
            detail: "the issue keeps its type; only an account that may push sets it".to_owned(),
        })
    }
}

//! Repositories of an owner that our account sees.

use std::convert;

use domain::RepositoryName;
use serde::Deserialize;

use crate::{Error, GitHubReader, client::GitHubClient, transport};

/// Repository in the list of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerRepository {
    /// Its name.
    pub name: RepositoryName,
    /// Its default branch.
    pub default_branch: String,
    /// True for an archived or disabled repository, which accepts no writes.
    pub is_archived: bool,
    /// True for a fork of another repository.
    pub is_fork: bool,
}

#[derive(Deserialize)]
struct WireOwnerRepository {
    full_name: RepositoryName,
    default_branch: String,
    archived: bool,
    disabled: bool,
    fork: bool,
}

/// Page of an installation's repositories.
#[derive(Deserialize)]
struct WireInstallationRepositories {
    repositories: Vec<WireOwnerRepository>,
}

impl From<WireOwnerRepository> for OwnerRepository {
    fn from(wire: WireOwnerRepository) -> Self {
        Self {
            name: wire.full_name,
            default_branch: wire.default_branch,
            is_archived: wire.archived || wire.disabled,
            is_fork: wire.fork,
        }
    }
}

impl GitHubReader {
    /// Lists the repositories of an organization or a user that our account on the default instance sees, sorted by
    /// name; at most 5,000. For an App these are the repositories on which it is installed.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the App is not installed there.
    pub async fn repositories_of(&self, owner: &str) -> Result<Vec<OwnerRepository>, Error> {
        self.clients.on(None)?.repositories_of(owner).await
    }
}

impl GitHubClient {
    async fn repositories_of(&self, owner: &str) -> Result<Vec<OwnerRepository>, Error> {
        let routes = self.routes();
        let repositories: Vec<WireOwnerRepository> = match self.app_id() {
            Some(_) => {
                let caller = routes.owner_caller(owner).await?;
                let entries = |page: WireInstallationRepositories| page.repositories;
                transport::read_list(&caller, "/installation/repositories", entries).await?
            }
            None => transport::read_list(routes.own(), "/user/repos", convert::identity).await?,
        };
        let mut found: Vec<_> = repositories.into_iter().map(OwnerRepository::from).collect();
        // A token sees the repositories of other owners too.
        found.retain(|repository| repository.name.owner().eq_ignore_ascii_case(owner));
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }
}

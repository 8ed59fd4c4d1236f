//! Checks that GitHub requires before a merge.

use domain::RepositoryName;

use crate::{
    Error, GitHubReader, GitHubWriter,
    client::{GitHubClient, percent_encode},
    permissions::AccessKind,
    wire::{WireBranch, WireBranchRule},
};

// GitHub's maximum number of entries per page.
const PAGE: usize = 100;

impl GitHubClient {
    async fn protecting(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        branch: &str,
    ) -> Result<Vec<String>, Error> {
        let path = format!("/branches/{}", percent_encode(branch));
        let found = self.get::<WireBranch>(repository, access, &path).await;
        Ok(Error::none_if_missing(found)?.map_or_else(Vec::new, WireBranch::required))
    }

    async fn of_rulesets(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        branch: &str,
    ) -> Result<Vec<String>, Error> {
        let path = format!("/rules/branches/{}?per_page={PAGE}", percent_encode(branch));
        let found = self.get::<Vec<WireBranchRule>>(repository, access, &path).await;
        let rules = Error::none_if_missing(found)?.unwrap_or_default();
        Ok(rules.iter().flat_map(WireBranchRule::required).collect())
    }
}

impl GitHubWriter {
    /// Lists the checks that must pass before a merge into a branch, by branch protection and by rulesets.
    ///
    /// # Errors
    /// [`Error::Forbidden`] when our account has no permission to read them.
    pub async fn required_checks(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Vec<String>, Error> {
        let client = self.clients.of(repository)?;
        // A branch may have both, and GitHub enforces them together.
        let mut required = client.protecting(repository, AccessKind::Write, branch).await?;
        required.extend(client.of_rulesets(repository, AccessKind::Write, branch).await?);
        Ok(required)
    }
}

impl GitHubReader {
    /// Lists the checks that must pass before a merge into a branch, as far as our account can read them. A
    /// reader App without permission for contents reads only those of rulesets.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn required_checks(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Vec<String>, Error> {
        let client = self.clients.of(repository)?;
        let mut required = Vec::new();
        // Either source may be forbidden to the reader without the other.
        for found in [
            client.protecting(repository, AccessKind::Look, branch).await,
            client.of_rulesets(repository, AccessKind::Look, branch).await,
        ] {
            match found {
                Ok(found) => required.extend(found),
                Err(Error::Forbidden { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(required)
    }
}

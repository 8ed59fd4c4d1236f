//! Rights of the writing account in a repository, compared with those that work needs.

use domain::RepositoryName;

use crate::{
    Error, GitHubWriter,
    client::GitHubClient,
    permissions::{AccessKind, RequiredAppPermission, find_missing_permissions},
    wire::WireRepositoryAccess,
};

impl GitHubWriter {
    /// Lists those of `needed` that our account lacks in a repository, as far as GitHub reports it: the permissions
    /// of an App's installation, the role and the scopes of a user's token. GitHub reports neither the permissions of a
    /// fine-grained token nor those of a workflow's job, so these count as held.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the App has no installation on the repository, or the token does not see it.
    pub async fn missing_permissions(
        &self,
        repository: &RepositoryName,
        needed: &[RequiredAppPermission],
    ) -> Result<Vec<RequiredAppPermission>, Error> {
        let client = self.clients.of(repository)?;
        if client.app_id().is_none() {
            let can_write = can_token_write(client, repository).await?;
            return Ok(if can_write { Vec::new() } else { needed.to_vec() });
        }
        let held = client.routes().read_permissions(repository).await?;
        let held: Vec<String> = held
            .iter()
            .map(|(name, level)| format!("{name}:{level}"))
            .collect();
        Ok(find_missing_permissions(needed, &held))
    }
}

/// Returns false when GitHub reports that the token's user cannot write to the repository, or that a scope is missing.
async fn can_token_write(client: &GitHubClient, repository: &RepositoryName) -> Result<bool, Error> {
    let identity = client.fetch_identity().await?;
    if !identity.is_user {
        return Ok(true);
    }
    let access: WireRepositoryAccess = client.get(repository, AccessKind::Write, "").await?;
    Ok(access.can_write(&identity.permissions))
}

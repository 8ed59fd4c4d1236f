//! Rules of a branch: demands of branch protection and of rulesets on the commits that it accepts.

use domain::RepositoryName;
use serde_json::json;

use crate::{
    Error, GitHubReader, GitHubWriter,
    client::{GitHubClient, percent_encode},
    permissions::AccessKind,
    wire::{WireBranch, WireBranchRule},
};

// GitHub's maximum number of entries per page.
const PAGE: usize = 100;

// The part of classic branch protection that accounts without administration may read. REST has none of it.
const PROTECTION: &str = "query($owner: String!, $name: String!, $branch: String!) { repository(owner: $owner, \
    name: $name) { ref(qualifiedName: $branch) { refUpdateRule { requiresSignatures } } } }";

/// Demands on the commits of a branch, by branch protection and rulesets together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchRules {
    /// True when each commit needs a signature that GitHub verifies.
    pub requires_signatures: bool,
}

impl BranchRules {
    /// Adds the demand of one rule of a ruleset.
    fn add(&mut self, rule: &WireBranchRule) {
        self.requires_signatures |= rule.is_about_signatures();
    }
}

impl GitHubWriter {
    /// Reads the rules of a branch, as far as our account can read them. The branch need not exist.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn branch_rules(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<BranchRules, Error> {
        fetch_branch_rules(
            self.clients.of(repository)?,
            repository,
            AccessKind::Write,
            branch,
        )
        .await
    }
}

impl GitHubReader {
    /// Reads the rules of a branch, as far as our account can read them: a reader App without permission for
    /// contents reads those of rulesets.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn branch_rules(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<BranchRules, Error> {
        fetch_branch_rules(self.clients.of(repository)?, repository, AccessKind::Look, branch).await
    }
}

async fn fetch_branch_rules(
    client: &GitHubClient,
    repository: &RepositoryName,
    access: AccessKind,
    branch: &str,
) -> Result<BranchRules, Error> {
    let mut rules = BranchRules::default();
    let path = format!("/rules/branches/{}?per_page={PAGE}", percent_encode(branch));
    let listed = client.get::<Vec<WireBranchRule>>(repository, access, &path).await;
    for rule in readable(listed)?.unwrap_or_default() {
        rules.add(&rule);
    }
    // Only a protected branch has more rules, so all others need no further request.
    let path = format!("/branches/{}", percent_encode(branch));
    let found = readable(client.get::<WireBranch>(repository, access, &path).await)?;
    if !found.is_some_and(|found| found.protected) {
        return Ok(rules);
    }
    let variables = json!({ "branch": format!("refs/heads/{branch}") });
    let protected = client.query(repository, access, PROTECTION, variables).await;
    if let Some(data) = readable(protected)? {
        let rule = &data["repository"]["ref"]["refUpdateRule"];
        rules.requires_signatures |= rule["requiresSignatures"].as_bool().unwrap_or_default();
    }
    Ok(rules)
}

/// Turns the failure of one source into `None`: it may be forbidden to the account, or unknown to an older server.
fn readable<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(Error::Forbidden { .. } | Error::NotFound { .. } | Error::Rejected { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

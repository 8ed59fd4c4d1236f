//! Rules of a branch: demands of branch protection and of rulesets on the commits that it accepts.

use domain::{BaseCondition, BaseRequirements, CommitId, RepositoryName};
use serde_json::json;

use crate::{
    BranchPattern, Error, GitHubWriter,
    client::{GitHubClient, percent_encode},
    permissions::AccessKind,
    transport::PAGE,
    wire::{WireBranch, WireBranchRule, WireProtectionRule, WireRuleset},
};

// The part of classic branch protection that accounts without administration may read. REST has none of it.
const PROTECTION: &str = "query($owner: String!, $name: String!, $branch: String!) { repository(owner: $owner, \
    name: $name) { ref(qualifiedName: $branch) { refUpdateRule { requiresSignatures requiresLinearHistory \
    requiresConversationResolution requiresCodeOwnerReviews requiredApprovingReviewCount \
    requiredStatusCheckContexts } } } }";

/// Demands of a branch, by branch protection and rulesets together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchRules {
    /// Conditions for a merge into the branch.
    pub requirements: BaseRequirements,
    /// Patterns for commits and the name of the branch.
    pub patterns: Vec<BranchPattern>,
}

impl BranchRules {
    /// Returns true when the branch sets the condition.
    pub fn includes(&self, condition: BaseCondition) -> bool {
        self.requirements.includes(condition)
    }

    /// Returns true when each commit needs a signature that GitHub verifies.
    pub fn requires_signatures(&self) -> bool {
        self.includes(BaseCondition::SignedCommits)
    }

    /// Adds the demand of one rule of a ruleset.
    fn add(&mut self, rule: &WireBranchRule) {
        let requirements = &mut self.requirements;
        requirements.checks.extend(rule.required());
        requirements.approvals = requirements.approvals.max(rule.approvals());
        for condition in rule.conditions() {
            add_condition(requirements, condition);
        }
        self.patterns.extend(rule.pattern());
    }

    /// Adds the demands of classic branch protection.
    fn add_protection(&mut self, rule: WireProtectionRule) {
        let requirements = &mut self.requirements;
        for condition in rule.conditions() {
            add_condition(requirements, condition);
        }
        requirements.approvals = requirements.approvals.max(rule.approvals());
        for check in rule.checks {
            if !requirements.checks.contains(&check) {
                requirements.checks.push(check);
            }
        }
    }
}

fn add_condition(requirements: &mut BaseRequirements, condition: BaseCondition) {
    if !requirements.includes(condition) {
        requirements.conditions.push(condition);
    }
}

impl GitHubWriter {
    /// Reads the rules of a branch that bind our account, as far as it can read them. The branch need not exist.
    /// Patterns of rulesets that our account may bypass are left out.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn branch_rules(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<BranchRules, Error> {
        let client = self.clients.of(repository)?;
        let (_, mut rules) = fetch_branch_rules(client, repository, AccessKind::Write, branch).await?;
        let mut bypassed = Vec::new();
        for ruleset in list_pattern_rulesets(&rules) {
            if can_bypass(client, repository, ruleset).await? {
                bypassed.push(ruleset);
            }
        }
        let is_bypassed = |found: &BranchPattern| found.ruleset.is_some_and(|id| bypassed.contains(&id));
        rules.patterns.retain(|found| !is_bypassed(found));
        Ok(rules)
    }

    /// Reads the conditions for a merge into a branch, as far as our account can read them. The patterns of its rulesets
    /// need more requests, and are left out.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn branch_requirements(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<BaseRequirements, Error> {
        let client = self.clients.of(repository)?;
        let (_, rules) = fetch_branch_rules(client, repository, AccessKind::Write, branch).await?;
        Ok(rules.requirements)
    }
}

/// Reads the tip of a branch and its rules. A source that our account cannot read demands nothing.
pub(crate) async fn fetch_branch_rules(
    client: &GitHubClient,
    repository: &RepositoryName,
    access: AccessKind,
    branch: &str,
) -> Result<(Option<CommitId>, BranchRules), Error> {
    let name = percent_encode(branch);
    let mut rules = BranchRules::default();
    let path = format!("/branches/{name}");
    let found = client.get_again::<WireBranch>(repository, access, &path).await;
    let found = none_if_hidden(found)?;
    let tip = found.as_ref().and_then(WireBranch::tip);
    let is_protected = found.as_ref().is_some_and(|found| found.protected);
    rules.requirements.checks = found.map_or_else(Vec::new, WireBranch::required);
    let path = format!("/rules/branches/{name}?per_page={PAGE}");
    let listed = client
        .get_again::<Vec<WireBranchRule>>(repository, access, &path)
        .await;
    for rule in none_if_hidden(listed)?.unwrap_or_default() {
        rules.add(&rule);
    }
    // Only a protected branch has more rules, so all others need no further request.
    if !is_protected {
        return Ok((tip, rules));
    }
    let variables = json!({ "branch": format!("refs/heads/{branch}") });
    let protected = client.query(repository, access, PROTECTION, variables).await;
    if let Some(data) = none_if_hidden(protected)?
        && let Some(rule) = WireProtectionRule::parse(&data)
    {
        rules.add_protection(rule);
    }
    Ok((tip, rules))
}

/// Lists the rulesets that have patterns, each once.
fn list_pattern_rulesets(rules: &BranchRules) -> Vec<u64> {
    let mut ids: Vec<u64> = rules.patterns.iter().filter_map(|found| found.ruleset).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Returns true if our account may push against a ruleset. GitHub lists rules even to accounts that they do not bind.
async fn can_bypass(client: &GitHubClient, repository: &RepositoryName, ruleset: u64) -> Result<bool, Error> {
    let path = format!("/rulesets/{ruleset}");
    let found = client
        .get_again::<WireRuleset>(repository, AccessKind::Write, &path)
        .await;
    Ok(none_if_hidden(found)?.is_some_and(|ruleset| ruleset.is_bypassed()))
}

/// Turns a refusal into `Ok(None)`: the part does not exist, our account cannot read it, or an older server does not know
/// it.
pub(crate) fn none_if_hidden<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound { .. } | Error::Forbidden { .. } | Error::Rejected { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

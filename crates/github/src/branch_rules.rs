//! Rules of a branch: demands of branch protection and of rulesets on the commits that it accepts.

use domain::{BaseCondition, BaseRequirements, CommitId, MetadataPattern, RepositoryName};
use serde_json::json;

use crate::{
    Error, GitHubReader, GitHubWriter,
    client::{GitHubClient, percent_encode},
    permissions::AccessKind,
    wire::{WireBranch, WireBranchRule, WireProtectionRule, WireRuleset},
};

// GitHub's maximum number of entries per page.
const PAGE: usize = 100;

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
    /// Permitted ways of a merge, such as `squash`; absent: no rule restricts them.
    pub merge_methods: Option<Vec<String>>,
    /// Restrictions of pushed files.
    pub files: FileRestrictions,
}

/// Pattern of a ruleset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchPattern {
    /// The pattern.
    pub pattern: MetadataPattern,
    /// Id of its ruleset; absent on older servers.
    pub ruleset: Option<u64>,
}

/// Restrictions of the files in a push.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileRestrictions {
    /// Paths that no push may touch, with `*` and `**`.
    pub paths: Vec<String>,
    /// Endings of file names that no push may contain.
    pub extensions: Vec<String>,
    /// Maximum length of a path.
    pub max_path_chars: Option<u64>,
    /// Maximum size of a file in MB.
    pub max_megabytes: Option<u64>,
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
        self.merge_methods = match (self.merge_methods.take(), rule.merge_methods()) {
            (Some(known), Some(more)) => {
                Some(known.into_iter().filter(|method| more.contains(method)).collect())
            }
            (known, more) => known.or(more),
        };
        self.files.add(rule.files());
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

impl FileRestrictions {
    fn add(&mut self, more: Self) {
        let least = |known: Option<u64>, more: Option<u64>| match (known, more) {
            (Some(known), Some(more)) => Some(known.min(more)),
            (known, more) => known.or(more),
        };
        self.paths.extend(more.paths);
        self.extensions.extend(more.extensions);
        self.max_path_chars = least(self.max_path_chars, more.max_path_chars);
        self.max_megabytes = least(self.max_megabytes, more.max_megabytes);
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
        let client = self.clients.of(repository)?;
        let (_, rules) = fetch_branch_rules(client, repository, AccessKind::Look, branch).await?;
        Ok(rules)
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

//! JSON of repositories, their branches and protection.

use domain::{BaseCondition, CommitId, MetadataPattern, PatternOperator, PatternSubject, RepositoryName};
use serde::{Deserialize, de::IgnoredAny};

use crate::{BranchPattern, CommitOrigin, CommitVerification, CreatedCommit, GitHubRepository};

#[derive(Deserialize)]
pub(crate) struct WireRepository {
    default_branch: String,
    #[serde(default)]
    private: bool,
    #[serde(default)]
    archived: bool,
    #[serde(default)]
    html_url: String,
    full_name: RepositoryName,
    #[serde(default)]
    size: u64,
}

impl From<WireRepository> for GitHubRepository {
    fn from(wire: WireRepository) -> Self {
        Self {
            name: wire.full_name,
            default_branch: wire.default_branch,
            private: wire.private,
            archived: wire.archived,
            url: wire.html_url,
            size_kib: wire.size,
        }
    }
}

/// Repository with the role of the token's user.
#[derive(Deserialize)]
pub(crate) struct WireRepositoryAccess {
    /// Required, so that JSON of a gateway is no repository.
    #[serde(rename = "full_name")]
    _full_name: IgnoredAny,
    #[serde(default)]
    private: bool,
    permissions: Option<WireRepositoryRole>,
}

#[derive(Deserialize)]
struct WireRepositoryRole {
    #[serde(default)]
    push: bool,
}

impl WireRepositoryAccess {
    /// Returns true if the user and the scopes of the token permit writing. A token without scopes is fine-grained.
    pub(crate) fn can_write(&self, scopes: &[String]) -> bool {
        let has_scope = |name: &str| scopes.iter().any(|scope| scope == name);
        let is_scoped = scopes.is_empty() || has_scope("repo") || (!self.private && has_scope("public_repo"));
        is_scoped && self.permissions.as_ref().is_none_or(|role| role.push)
    }
}

#[derive(Deserialize)]
pub(crate) struct WireRef {
    pub(crate) object: WireRefObject,
}

#[derive(Deserialize)]
pub(crate) struct WireRefObject {
    pub(crate) sha: CommitId,
}

/// Reference with its full name.
#[derive(Deserialize)]
pub(crate) struct WireNamedRef {
    #[serde(rename = "ref")]
    name: String,
    object: WireRefObject,
}

impl WireNamedRef {
    /// Name of the branch and its head; `None` for another reference.
    pub(crate) fn into_branch(self) -> Option<(String, CommitId)> {
        let branch = self.name.strip_prefix("refs/heads/")?.to_owned();
        Some((branch, self.object.sha))
    }
}

/// Id of a new blob or tree.
#[derive(Deserialize)]
pub(crate) struct WireGitObject {
    pub(crate) sha: String,
}

#[derive(Deserialize)]
pub(crate) struct WireGitCommit {
    sha: CommitId,
    #[serde(default)]
    parents: Vec<WireRefObject>,
    committer: Option<WireCommitPerson>,
    /// Absent on servers without the judgment.
    verification: Option<WireVerification>,
}

/// GitHub's judgment about the signature of a commit.
#[derive(Deserialize)]
pub(super) struct WireVerification {
    #[serde(default)]
    pub(super) verified: bool,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct WireCommitPerson {
    #[serde(default)]
    name: String,
    #[serde(default)]
    email: String,
}

impl From<WireGitCommit> for CommitOrigin {
    fn from(wire: WireGitCommit) -> Self {
        // Enterprise Server adds a word to the name, and has the address at its own host.
        let is_server = |person: WireCommitPerson| {
            person.name.starts_with("GitHub") && person.email.starts_with("noreply@")
        };
        Self {
            parents: wire.parents.into_iter().map(|parent| parent.sha).collect(),
            is_made_by_server: wire.committer.is_some_and(is_server),
        }
    }
}

impl From<WireGitCommit> for CreatedCommit {
    fn from(wire: WireGitCommit) -> Self {
        let judged = wire.verification;
        Self {
            id: wire.sha,
            verification: CommitVerification {
                verified: judged.as_ref().is_some_and(|judged| judged.verified),
                reason: judged.and_then(|judged| judged.reason).unwrap_or_default(),
            },
        }
    }
}

/// Branch with the part of its protection that every account with read access sees.
#[derive(Deserialize)]
pub(crate) struct WireBranch {
    /// Required, so that JSON of a gateway is no branch without protection.
    #[serde(rename = "name")]
    _name: IgnoredAny,
    commit: Option<WireRefObject>,
    /// True for a branch with classic protection.
    #[serde(default)]
    pub(crate) protected: bool,
    protection: Option<WireProtection>,
}

#[derive(Deserialize)]
struct WireProtection {
    required_status_checks: Option<WireRequiredChecks>,
}

#[derive(Deserialize)]
struct WireRequiredChecks {
    #[serde(default)]
    contexts: Vec<String>,
}

impl WireBranch {
    /// Commit at the tip of the branch.
    pub(crate) fn tip(&self) -> Option<CommitId> {
        self.commit.as_ref().map(|commit| commit.sha.clone())
    }

    pub(crate) fn required(self) -> Vec<String> {
        let checks = self
            .protection
            .and_then(|protection| protection.required_status_checks);
        checks.map(|checks| checks.contexts).unwrap_or_default()
    }
}

/// Rule of a ruleset; rules about other subjects than checks have other parameters.
#[derive(Deserialize)]
pub(crate) struct WireBranchRule {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    parameters: serde_json::Value,
    ruleset_id: Option<u64>,
}

impl WireBranchRule {
    pub(crate) fn required(&self) -> Vec<String> {
        let checks = self.parameters["required_status_checks"].as_array();
        let named = checks
            .into_iter()
            .flatten()
            .filter_map(|check| check["context"].as_str());
        let is_about_checks = self.kind == "required_status_checks";
        named.filter(|_| is_about_checks).map(str::to_owned).collect()
    }

    /// Number of approvals that the rule requires; 0 for rules about other subjects.
    pub(crate) fn approvals(&self) -> u32 {
        let count = self.parameters["required_approving_review_count"].as_u64();
        let count = count.filter(|_| self.kind == "pull_request").unwrap_or_default();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Conditions without a value that the rule sets.
    pub(crate) fn conditions(&self) -> Vec<BaseCondition> {
        use BaseCondition::{
            CodeOwnerReview, CurrentBase, LastPushApproval, LinearHistory, MergeQueue, ResolvedThreads,
            SignedCommits,
        };
        let is_set = |name: &str| self.parameters[name].as_bool() == Some(true);
        let set: &[(bool, BaseCondition)] = match self.kind.as_str() {
            "required_status_checks" => &[(is_set("strict_required_status_checks_policy"), CurrentBase)],
            "pull_request" => &[
                (is_set("required_review_thread_resolution"), ResolvedThreads),
                (is_set("require_code_owner_review"), CodeOwnerReview),
                (is_set("require_last_push_approval"), LastPushApproval),
            ],
            "required_signatures" => &[(true, SignedCommits)],
            "required_linear_history" => &[(true, LinearHistory)],
            "merge_queue" => &[(true, MergeQueue)],
            _ => &[],
        };
        let set = set.iter().filter(|(is_set, _)| *is_set);
        set.map(|(_, condition)| *condition).collect()
    }

    /// Pattern for commits or the name of the branch; `None` for rules about other subjects, and for an operator of a
    /// newer server.
    pub(crate) fn pattern(&self) -> Option<BranchPattern> {
        let subject = match self.kind.as_str() {
            "commit_message_pattern" => PatternSubject::CommitMessage,
            "commit_author_email_pattern" => PatternSubject::AuthorEmail,
            "committer_email_pattern" => PatternSubject::CommitterEmail,
            "branch_name_pattern" => PatternSubject::BranchName,
            _ => return None,
        };
        let operator = match self.parameters["operator"].as_str()? {
            "starts_with" => PatternOperator::StartsWith,
            "ends_with" => PatternOperator::EndsWith,
            "contains" => PatternOperator::Contains,
            "regex" => PatternOperator::Regex,
            _ => return None,
        };
        Some(BranchPattern {
            pattern: MetadataPattern {
                subject,
                operator,
                pattern: self.parameters["pattern"].as_str()?.to_owned(),
                negate: self.parameters["negate"].as_bool().unwrap_or_default(),
            },
            ruleset: self.ruleset_id,
        })
    }
}

/// Ruleset, as far as it concerns our account.
#[derive(Deserialize)]
pub(crate) struct WireRuleset {
    /// Required, so that JSON of a gateway is no ruleset.
    #[serde(rename = "id")]
    _id: IgnoredAny,
    #[serde(default)]
    current_user_can_bypass: String,
}

impl WireRuleset {
    /// True if the rules do not bind pushes of our account.
    pub(crate) fn is_bypassed(&self) -> bool {
        matches!(self.current_user_can_bypass.as_str(), "always" | "exempt")
    }
}

/// Part of classic branch protection that accounts without administration see.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct WireProtectionRule {
    requires_signatures: Option<bool>,
    requires_linear_history: Option<bool>,
    requires_conversation_resolution: Option<bool>,
    requires_code_owner_reviews: Option<bool>,
    required_approving_review_count: Option<u32>,
    #[serde(rename = "requiredStatusCheckContexts")]
    contexts: Option<Vec<Option<String>>>,
    #[serde(skip)]
    pub(crate) checks: Vec<String>,
}

impl WireProtectionRule {
    /// Parses the answer to the query; `None` for a branch without such a rule.
    pub(crate) fn parse(data: &serde_json::Value) -> Option<Self> {
        let rule = &data["repository"]["ref"]["refUpdateRule"];
        let mut rule: Self = serde_json::from_value(rule.clone()).ok()?;
        rule.checks = rule.contexts.take().into_iter().flatten().flatten().collect();
        Some(rule)
    }

    pub(crate) fn approvals(&self) -> u32 {
        self.required_approving_review_count.unwrap_or_default()
    }

    pub(crate) fn conditions(&self) -> Vec<BaseCondition> {
        let all = [
            (self.requires_signatures, BaseCondition::SignedCommits),
            (self.requires_linear_history, BaseCondition::LinearHistory),
            (
                self.requires_conversation_resolution,
                BaseCondition::ResolvedThreads,
            ),
            (self.requires_code_owner_reviews, BaseCondition::CodeOwnerReview),
        ];
        let set = all.into_iter().filter(|(is_set, _)| *is_set == Some(true));
        set.map(|(_, condition)| condition).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_checks_parse_from_protection_and_rulesets() {
        let branch = r#"{"name": "main", "protection": {"enabled": true,
            "required_status_checks": {"enforcement_level": "everyone", "contexts": ["build"], "checks": []}}}"#;
        let branch: WireBranch = serde_json::from_str(branch).unwrap();
        assert_eq!(branch.required(), ["build"]);
        let rules = r#"[{"type": "deletion"},
            {"type": "required_status_checks", "parameters": {"strict_required_status_checks_policy": true,
            "required_status_checks": [{"context": "test", "integration_id": 1}]}}]"#;
        let rules: Vec<WireBranchRule> = serde_json::from_str(rules).unwrap();
        let required: Vec<String> = rules.iter().flat_map(WireBranchRule::required).collect();
        assert_eq!(required, ["test"]);
    }

    #[test]
    fn token_writes_by_role_with_scope() {
        let of = |more: &str| -> WireRepositoryAccess {
            serde_json::from_str(&format!(r#"{{"full_name": "acme/shop"{more}}}"#)).unwrap()
        };
        let (pushes, reads) = (
            r#", "private": true, "permissions": {"push": true, "pull": true}"#,
            r#", "permissions": {"push": false, "pull": true}"#,
        );
        for (more, scopes, may_write) in [
            (pushes, &[][..], true),
            (pushes, &["repo"][..], true),
            (pushes, &["gist", "public_repo"][..], false),
            (reads, &["repo"][..], false),
            (reads, &[][..], false),
            ("", &["public_repo"][..], true),
            ("", &["gist"][..], false),
        ] {
            let scopes: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
            assert_eq!(of(more).can_write(&scopes), may_write, "{more} {scopes:?}");
        }
    }

    #[test]
    fn ruleset_conditions_parse_by_kind() {
        let rules = r#"[{"type": "required_signatures"}, {"type": "required_linear_history"}, {"type": "deletion"},
            {"type": "merge_queue", "parameters": {}},
            {"type": "pull_request", "parameters": {"required_approving_review_count": 2,
            "required_review_thread_resolution": true}},
            {"type": "required_status_checks", "parameters": {"strict_required_status_checks_policy": true}}]"#;
        let rules: Vec<WireBranchRule> = serde_json::from_str(rules).unwrap();
        let conditions: Vec<BaseCondition> = rules.iter().flat_map(WireBranchRule::conditions).collect();
        assert_eq!(
            conditions,
            [
                BaseCondition::SignedCommits,
                BaseCondition::LinearHistory,
                BaseCondition::MergeQueue,
                BaseCondition::ResolvedThreads,
                BaseCondition::CurrentBase,
            ]
        );
        assert_eq!(rules.iter().map(WireBranchRule::approvals).max(), Some(2));
        let optional = r#"{"type": "pull_request", "parameters": {"required_approving_review_count": 0}}"#;
        let optional: WireBranchRule = serde_json::from_str(optional).unwrap();
        assert_eq!((optional.conditions(), optional.approvals()), (vec![], 0));
    }

    #[test]
    fn missing_verification_counts_as_unverified() {
        let sha = "a".repeat(40);
        for (judged, verified, reason) in [
            (String::new(), false, ""),
            (
                r#","verification":{"verified":false,"reason":null}"#.to_owned(),
                false,
                "",
            ),
            (
                r#","verification":{"verified":false,"reason":"unsigned"}"#.to_owned(),
                false,
                "unsigned",
            ),
            (
                r#","verification":{"verified":true,"reason":"valid","signature":"x"}"#.to_owned(),
                true,
                "valid",
            ),
        ] {
            let wire: WireGitCommit = serde_json::from_str(&format!(r#"{{"sha":"{sha}"{judged}}}"#)).unwrap();
            let CommitVerification {
                verified: said,
                reason: code,
            } = CreatedCommit::from(wire).verification;
            assert_eq!((said, code.as_str()), (verified, reason), "{judged}");
        }
    }

    #[test]
    fn review_conditions_parse_from_one_rule() {
        let rule = r#"{"type": "pull_request", "parameters": {"required_approving_review_count": 2,
            "dismiss_stale_reviews_on_push": true, "require_code_owner_review": true,
            "require_last_push_approval": true, "required_review_thread_resolution": false}}"#;
        let rule: WireBranchRule = serde_json::from_str(rule).unwrap();
        // The reviews show a dismissal, so the rule about it is no condition.
        assert_eq!(
            rule.conditions(),
            [BaseCondition::CodeOwnerReview, BaseCondition::LastPushApproval]
        );
    }

    #[test]
    fn patterns_parse_with_operator_by_kind() {
        let rules = r#"[
            {"type": "commit_message_pattern", "ruleset_id": 7, "parameters": {"name": "keys", "negate": false,
            "operator": "regex", "pattern": "^ENG-"}},
            {"type": "commit_author_email_pattern", "parameters": {"operator": "ends_with", "pattern": "@acme.example"}},
            {"type": "committer_email_pattern", "parameters": {"operator": "contains", "pattern": "bot"}},
            {"type": "branch_name_pattern", "parameters": {"operator": "starts_with", "pattern": "tmp/", "negate": true}},
            {"type": "tag_name_pattern", "parameters": {"operator": "starts_with", "pattern": "v"}},
            {"type": "branch_name_pattern", "parameters": {"operator": "sounds_like", "pattern": "v"}}]"#;
        let rules: Vec<WireBranchRule> = serde_json::from_str(rules).unwrap();
        let found: Vec<BranchPattern> = rules.iter().filter_map(WireBranchRule::pattern).collect();
        assert_eq!((found[0].ruleset, found[1].ruleset), (Some(7), None));
        let words: Vec<String> = found.iter().map(|found| found.pattern.words()).collect();
        assert_eq!(
            words,
            [
                "the commit message must match the regular expression `^ENG-`",
                "the mail address of the author must end with `@acme.example`",
                "the mail address of the committer must contain `bot`",
                "the branch name must not start with `tmp/`",
            ]
        );
    }

    #[test]
    fn protection_parses_without_later_fields() {
        let of = |rule: serde_json::Value| {
            WireProtectionRule::parse(&serde_json::json!({"repository": {"ref": {"refUpdateRule": rule}}}))
        };
        assert!(of(serde_json::Value::Null).is_none());
        let rule = of(serde_json::json!({"requiresSignatures": true})).unwrap();
        assert_eq!(rule.conditions(), [BaseCondition::SignedCommits]);
        let rule = of(serde_json::json!({
            "requiresSignatures": false, "requiresLinearHistory": true, "requiresConversationResolution": null,
            "requiresCodeOwnerReviews": true, "requiredApprovingReviewCount": 2,
            "requiredStatusCheckContexts": ["build", null],
        }))
        .unwrap();
        assert_eq!(
            rule.conditions(),
            [BaseCondition::LinearHistory, BaseCondition::CodeOwnerReview]
        );
        assert_eq!((rule.approvals(), rule.checks), (2, vec!["build".to_owned()]));
    }

    #[test]
    fn bypass_counts_for_pushes_alone() {
        for (can, is_bypassed) in [
            ("always", true),
            ("exempt", true),
            ("pull_requests_only", false),
            ("never", false),
        ] {
            let ruleset = format!(r#"{{"id": 7, "current_user_can_bypass": "{can}"}}"#);
            let ruleset: WireRuleset = serde_json::from_str(&ruleset).unwrap();
            assert_eq!(ruleset.is_bypassed(), is_bypassed, "{can}");
        }
        let older: WireRuleset = serde_json::from_str(r#"{"id": 7}"#).unwrap();
        assert!(!older.is_bypassed());
    }
}

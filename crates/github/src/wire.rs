//! GitHub's JSON, as far as it is read here, and its translation into the model.

use domain::{CommitId, RepositoryName, Timestamp};
use serde::Deserialize;

use crate::{
    Check, CheckConclusion, CheckKind, CheckStatus, Comment, CommentId, Error, HookDelivery, Permission,
    PullRequest, PullRequestState, Repository, error::capped,
};

const OUTPUT_TAIL_BYTES: usize = 8 * 1024;

#[derive(Deserialize)]
pub(crate) struct WireUser {
    pub(crate) login: String,
}

fn login(user: Option<WireUser>) -> String {
    user.map_or_else(|| "ghost".to_owned(), |user| user.login)
}

fn instant(text: Option<&str>) -> Option<Timestamp> {
    text.and_then(Timestamp::parse)
}

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
}

impl From<WireRepository> for Repository {
    fn from(wire: WireRepository) -> Self {
        Self {
            name: wire.full_name,
            default_branch: wire.default_branch,
            private: wire.private,
            archived: wire.archived,
            url: wire.html_url,
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct WireCheckRuns {
    pub(crate) check_runs: Vec<WireCheckRun>,
}

#[derive(Deserialize)]
pub(crate) struct WireCheckRun {
    id: u64,
    name: String,
    status: String,
    conclusion: Option<String>,
    completed_at: Option<String>,
    html_url: Option<String>,
    check_suite: Option<WireSuite>,
    output: Option<WireOutput>,
}

#[derive(Deserialize)]
struct WireSuite {
    id: u64,
}

#[derive(Deserialize)]
struct WireOutput {
    title: Option<String>,
    summary: Option<String>,
    text: Option<String>,
}

impl WireOutput {
    fn tail(self) -> String {
        let parts = [self.title, self.summary, self.text];
        let whole = parts
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("\n");
        tail(&whole).to_owned()
    }
}

fn tail(text: &str) -> &str {
    let mut from = text.len().saturating_sub(OUTPUT_TAIL_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

impl From<WireCheckRun> for Check {
    fn from(wire: WireCheckRun) -> Self {
        let status = match wire.status.as_str() {
            "completed" => CheckStatus::Completed,
            "in_progress" => CheckStatus::InProgress,
            _ => CheckStatus::Queued,
        };
        let completed = status == CheckStatus::Completed;
        Self {
            kind: CheckKind::Run,
            id: wire.id,
            name: wire.name,
            suite: wire.check_suite.map_or(0, |suite| suite.id),
            status,
            conclusion: completed.then(|| check_conclusion(wire.conclusion.as_deref())),
            completed_at: instant(wire.completed_at.as_deref()).filter(|_| completed),
            url: wire.html_url.unwrap_or_default(),
            output_tail: wire.output.map(WireOutput::tail).unwrap_or_default(),
        }
    }
}

/// An end that this code does not know counts as bad: nothing is called green by accident.
fn check_conclusion(text: Option<&str>) -> CheckConclusion {
    match text {
        Some("success") => CheckConclusion::Success,
        Some("neutral") => CheckConclusion::Neutral,
        Some("cancelled") => CheckConclusion::Cancelled,
        Some("skipped") => CheckConclusion::Skipped,
        Some("timed_out") => CheckConclusion::TimedOut,
        Some("action_required") => CheckConclusion::ActionRequired,
        Some("stale") => CheckConclusion::Stale,
        Some("startup_failure") => CheckConclusion::StartupFailure,
        Some(_) | None => CheckConclusion::Failure,
    }
}

#[derive(Deserialize)]
pub(crate) struct WireCombinedStatus {
    pub(crate) statuses: Vec<WireStatus>,
}

#[derive(Deserialize)]
pub(crate) struct WireStatus {
    id: u64,
    context: String,
    state: String,
    description: Option<String>,
    target_url: Option<String>,
    updated_at: Option<String>,
}

impl From<WireStatus> for Check {
    fn from(wire: WireStatus) -> Self {
        let conclusion = match wire.state.as_str() {
            "pending" => None,
            "success" => Some(CheckConclusion::Success),
            _ => Some(CheckConclusion::Failure),
        };
        Self {
            kind: CheckKind::Status,
            id: wire.id,
            name: wire.context,
            suite: 0,
            status: if conclusion.is_some() {
                CheckStatus::Completed
            } else {
                CheckStatus::InProgress
            },
            conclusion,
            completed_at: instant(wire.updated_at.as_deref()).filter(|_| conclusion.is_some()),
            url: wire.target_url.unwrap_or_default(),
            output_tail: wire.description.unwrap_or_default(),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct WirePullRequest {
    number: u64,
    #[serde(default)]
    node_id: String,
    title: String,
    body: Option<String>,
    head: WireEnd,
    base: WireEnd,
    user: Option<WireUser>,
    #[serde(default)]
    html_url: String,
    #[serde(default)]
    draft: bool,
    merged: Option<bool>,
    merged_at: Option<String>,
    merged_by: Option<WireUser>,
    state: String,
    updated_at: Option<String>,
    closed_at: Option<String>,
}

#[derive(Deserialize)]
struct WireEnd {
    #[serde(rename = "ref")]
    branch: String,
    sha: CommitId,
    repo: Option<WireEndRepository>,
}

#[derive(Deserialize)]
struct WireEndRepository {
    full_name: String,
}

impl From<WirePullRequest> for PullRequest {
    fn from(wire: WirePullRequest) -> Self {
        Self {
            number: wire.number,
            node_id: wire.node_id,
            title: wire.title,
            body: wire.body.unwrap_or_default(),
            branch: wire.head.branch,
            head: wire.head.sha,
            head_repository: wire
                .head
                .repo
                .map(|repository| repository.full_name)
                .unwrap_or_default(),
            base_branch: wire.base.branch,
            author: login(wire.user),
            url: wire.html_url,
            draft: wire.draft,
            merged: wire.merged.unwrap_or(false) || wire.merged_at.is_some(),
            merged_by: wire.merged_by.map(|user| user.login),
            state: if wire.state == "open" {
                PullRequestState::Open
            } else {
                PullRequestState::Closed
            },
            updated_at: instant(wire.updated_at.as_deref()),
            closed_at: instant(wire.closed_at.as_deref()),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct WirePermission {
    permission: String,
}

impl From<WirePermission> for Permission {
    fn from(wire: WirePermission) -> Self {
        match wire.permission.as_str() {
            "admin" => Self::Admin,
            "write" | "maintain" => Self::Write,
            "read" | "triage" => Self::Read,
            _ => Self::None,
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct WireComment {
    pub(crate) id: u64,
    body: Option<String>,
    user: Option<WireUser>,
    created_at: Option<String>,
    updated_at: Option<String>,
    issue_url: Option<String>,
    performed_via_github_app: Option<WireApp>,
}

#[derive(Deserialize)]
struct WireApp {
    id: u64,
}

impl WireComment {
    /// The comment with the number of the issue or pull request that it stands on. Whose it is, the caller knows.
    pub(crate) fn into_numbered(self) -> Option<(u64, Comment)> {
        let number = self.issue_url.as_deref()?.rsplit('/').next()?.parse().ok()?;
        Some((number, self.into_comment("", None)))
    }

    pub(crate) fn into_comment(self, our_login: &str, our_app: Option<u64>) -> Comment {
        let author = login(self.user);
        let via_our_app = our_app.is_some() && self.performed_via_github_app.map(|app| app.id) == our_app;
        Comment {
            id: CommentId(self.id),
            by_us: via_our_app || author.eq_ignore_ascii_case(our_login),
            author,
            body: self.body.unwrap_or_default(),
            created_at: instant(self.created_at.as_deref()),
            updated_at: instant(self.updated_at.as_deref().or(self.created_at.as_deref())),
        }
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

/// A branch with the part of its protection that everybody with read access sees.
#[derive(Deserialize)]
pub(crate) struct WireBranch {
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
    pub(crate) fn required(self) -> Vec<String> {
        let checks = self
            .protection
            .and_then(|protection| protection.required_status_checks);
        checks.map(|checks| checks.contexts).unwrap_or_default()
    }
}

/// A rule of a ruleset; those about other things than checks have other parameters.
#[derive(Deserialize)]
pub(crate) struct WireBranchRule {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    parameters: serde_json::Value,
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
}

#[derive(Deserialize)]
pub(crate) struct WireDelivery {
    id: u64,
    guid: String,
    delivered_at: String,
    event: String,
    action: Option<String>,
    #[serde(default)]
    status_code: u16,
    #[serde(default)]
    redelivery: bool,
}

/// One delivery with what it carried.
#[derive(Deserialize)]
pub(crate) struct WireDeliveryDetail {
    pub(crate) request: WireDeliveryRequest,
}

#[derive(Deserialize)]
pub(crate) struct WireDeliveryRequest {
    pub(crate) payload: serde_json::Value,
}

impl TryFrom<WireDelivery> for HookDelivery {
    type Error = Error;
    fn try_from(wire: WireDelivery) -> Result<Self, Error> {
        let delivered_at = Timestamp::parse(&wire.delivered_at).ok_or_else(|| Error::Malformed {
            detail: format!("delivered_at {}", capped(&wire.delivered_at)),
        })?;
        Ok(Self {
            id: wire.id,
            guid: wire.guid,
            delivered_at,
            event: wire.event,
            action: wire.action,
            status_code: wire.status_code,
            redelivery: wire.redelivery,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_checks_are_read_from_branch_protection_and_from_rulesets() {
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
}

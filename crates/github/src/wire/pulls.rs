//! JSON of pull requests.

use domain::{AutoMerge, CommitId, MergeState};
use serde::Deserialize;

use super::{
    issues::WireLabel,
    parse_instant, parse_lock,
    people::{WireTeam, WireUser, resolve_login},
};
use crate::{PullRequest, PullRequestMerge, PullRequestState, progress_note::has_progress_note};

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
    #[serde(default)]
    requested_reviewers: Vec<WireUser>,
    #[serde(default)]
    requested_teams: Vec<WireTeam>,
    #[serde(default)]
    labels: Vec<WireLabel>,
    /// Null while GitHub computes it; absent in lists.
    mergeable: Option<bool>,
    #[serde(default)]
    mergeable_state: String,
    auto_merge: Option<WireAutoMerge>,
    #[serde(default)]
    locked: bool,
    active_lock_reason: Option<String>,
}

#[derive(Deserialize)]
struct WireAutoMerge {
    enabled_by: Option<WireUser>,
    #[serde(default)]
    merge_method: String,
}

impl From<WireAutoMerge> for AutoMerge {
    fn from(wire: WireAutoMerge) -> Self {
        Self {
            by: resolve_login(wire.enabled_by),
            method: wire.merge_method,
        }
    }
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
    #[serde(default)]
    archived: bool,
}

/// Parses whether a head can be merged. GitHub's `mergeable` is the newer of the two answers.
fn parse_merge_state(mergeable: Option<bool>, state: &str) -> MergeState {
    match (mergeable, state) {
        (Some(false), _) | (_, "dirty") => MergeState::Conflicting,
        (None, _) => MergeState::Unknown,
        (Some(true), "clean" | "has_hooks") => MergeState::Clean,
        (Some(true), "unstable") => MergeState::Unstable,
        (Some(true), "behind") => MergeState::Behind,
        (Some(true), "blocked") => MergeState::Blocked,
        (Some(true), "draft") => MergeState::Draft,
        (Some(true), _) => MergeState::Unknown,
    }
}

impl From<WirePullRequest> for PullRequest {
    fn from(wire: WirePullRequest) -> Self {
        let base = wire.base.repo.as_ref();
        let organization = base.and_then(|repository| repository.full_name.split('/').next());
        let organization = organization.unwrap_or_default().to_owned();
        let requested_teams = wire
            .requested_teams
            .into_iter()
            .filter_map(|team| team.into_name(&organization))
            .collect();
        let merge = PullRequestMerge {
            state: parse_merge_state(wire.mergeable, &wire.mergeable_state),
            base: Some(wire.base.sha),
            auto_merge: wire.auto_merge.map(AutoMerge::from),
            is_archived: wire.base.repo.is_some_and(|repository| repository.archived),
        };
        Self {
            number: wire.number,
            node_id: wire.node_id,
            title: wire.title,
            draft: wire.draft || wire.body.as_deref().is_some_and(has_progress_note),
            body: wire.body.unwrap_or_default(),
            branch: wire.head.branch,
            head: wire.head.sha,
            head_repository: wire
                .head
                .repo
                // A deleted fork leaves the pull request without a head repository.
                .map(|repository| repository.full_name)
                .unwrap_or_default(),
            base_branch: wire.base.branch,
            author: resolve_login(wire.user),
            url: wire.html_url,
            // Lists omit `merged` and have `merged_at` only.
            merged: wire.merged.unwrap_or(false) || wire.merged_at.is_some(),
            merged_by: wire.merged_by.map(|user| user.login),
            state: if wire.state == "open" {
                PullRequestState::Open
            } else {
                PullRequestState::Closed
            },
            updated_at: parse_instant(wire.updated_at.as_deref()),
            closed_at: parse_instant(wire.closed_at.as_deref()),
            requested_reviewers: wire
                .requested_reviewers
                .into_iter()
                .map(|user| user.login)
                .collect(),
            requested_teams,
            labels: wire.labels.into_iter().map(|label| label.name).collect(),
            lock: parse_lock(wire.locked, wire.active_lock_reason),
            merge,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_state_parses_every_answer() {
        for (mergeable, state, parsed) in [
            (Some(true), "clean", MergeState::Clean),
            (Some(true), "has_hooks", MergeState::Clean),
            (Some(true), "unstable", MergeState::Unstable),
            (Some(true), "behind", MergeState::Behind),
            (Some(true), "blocked", MergeState::Blocked),
            (Some(true), "draft", MergeState::Draft),
            (Some(true), "new", MergeState::Unknown),
            (Some(false), "dirty", MergeState::Conflicting),
            (Some(false), "clean", MergeState::Conflicting),
            (None, "dirty", MergeState::Conflicting),
            (None, "unknown", MergeState::Unknown),
            (None, "", MergeState::Unknown),
        ] {
            assert_eq!(
                parse_merge_state(mergeable, state),
                parsed,
                "{mergeable:?} {state}"
            );
        }
    }
}

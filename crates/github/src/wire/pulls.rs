//! JSON of pull requests.

use domain::CommitId;
use serde::Deserialize;

use super::{
    issues::WireLabel,
    parse_instant,
    people::{WireUser, resolve_login},
};
use crate::{PullRequest, PullRequestState, progress_note::has_progress_note};

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
    labels: Vec<WireLabel>,
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
            labels: wire.labels.into_iter().map(|label| label.name).collect(),
        }
    }
}

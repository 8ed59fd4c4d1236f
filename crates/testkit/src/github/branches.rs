//! Branches and their requirements before a merge.

use std::sync::Arc;

use axum::extract::{OriginalUri, Path, Query, State};
use axum::http::StatusCode;

use super::auth::{GitHubCaller, not_found};
use super::hub::GitHubState;
use super::rest::{GitHubPageQuery, RestAnswer, with_repo};
use super::{history, repository};
use crate::http::render_json_answer;

type BranchPath = (String, String, String);

/// Returns a branch with its classic protection, as readers see it.
pub(super) async fn get_branch(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, branch)): Path<BranchPath>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let sha = repository::list_branches(&repo.path)
            .remove(&branch)
            .ok_or_else(not_found)?;
        let head = history::read_commit(&repo.path, &sha).map_err(|_| not_found())?;
        Ok(render_json_answer(
            StatusCode::OK,
            repo.branch_json(&branch, &head, &hub.url),
        ))
    })
}

/// Lists the ruleset rules that match a branch name. The branch need not exist.
pub(super) async fn list_branch_rules(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    uri: OriginalUri,
    Path((owner, name, branch)): Path<BranchPath>,
    Query(page): Query<GitHubPageQuery>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        Ok(page.answer(&hub, &uri.0, repo.rules_json(&branch)))
    })
}

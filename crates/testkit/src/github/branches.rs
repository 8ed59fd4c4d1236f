//! Branches, their requirements before a merge, and the comparison of two commits.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::auth::{GitHubCaller, not_found};
use super::hub::GitHubState;
use super::rest::{ListPage, RestAnswer, with_repo};
use super::{history, hunks, repository};
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
    Path((owner, name, branch)): Path<BranchPath>,
    page: ListPage,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        Ok(page.answer(repo.rules_json(&branch)))
    })
}

/// Returns a ruleset of the repository, with the caller's right to bypass it.
pub(super) async fn get_ruleset(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, id)): Path<(String, String, usize)>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let found = repo.ruleset_json(id, &hub.url).ok_or_else(not_found)?;
        Ok(render_json_answer(StatusCode::OK, found))
    })
}

/// Compares `BASE...HEAD`: the head's changes since the merge base, with all files and commits.
pub(super) async fn compare_commits(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, range)): Path<(String, String, String)>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let (base, head) = range.split_once("...").ok_or_else(not_found)?;
        let diff = repository::render_unified_diff(&repo.path, base, head).map_err(|_| not_found())?;
        let base_commit = history::read_commit(&repo.path, base).map_err(|_| not_found())?;
        let left = history::merge_base(&repo.path, base, head).map_err(|_| not_found())?;
        let left = history::read_commit(&repo.path, &left).map_err(|_| not_found())?;
        // `list_pushed_commits` returns at most 20 commits, which suffices for the stand-in's branches.
        let ahead =
            history::list_pushed_commits(&repo.path, Some(&base.to_owned()), head).unwrap_or_default();
        let behind =
            history::list_pushed_commits(&repo.path, Some(&head.to_owned()), base).unwrap_or_default();
        let status = match (ahead.is_empty(), behind.is_empty()) {
            (true, true) => "identical",
            (false, true) => "ahead",
            (true, false) => "behind",
            (false, false) => "diverged",
        };
        let page = format!("{}/{}/compare/{range}", hub.url, repo.name);
        let files = hunks::files_of(&diff);
        let files: Vec<Value> = files.iter().map(|file| file.json(repo, head, &hub.url)).collect();
        let commits: Vec<Value> = ahead
            .iter()
            .map(|commit| repo.commit_json(commit, &hub.url))
            .collect();
        Ok(render_json_answer(
            StatusCode::OK,
            json!({
                "url": format!("{}/compare/{range}", repo.api_url(&hub.url)), "html_url": page, "permalink_url": page,
                "diff_url": format!("{page}.diff"), "patch_url": format!("{page}.patch"), "status": status,
                "base_commit": repo.commit_json(&base_commit, &hub.url),
                "merge_base_commit": repo.commit_json(&left, &hub.url), "ahead_by": ahead.len(),
                "behind_by": behind.len(), "total_commits": ahead.len(), "commits": commits, "files": files,
            }),
        ))
    })
}

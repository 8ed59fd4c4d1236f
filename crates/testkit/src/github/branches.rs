//! Branches and their requirements before a merge.

use std::sync::Arc;

use axum::extract::{OriginalUri, Path, Query, State};
use axum::http::StatusCode;

use super::auth::{Caller, not_found};
use super::hub::Hub;
use super::rest::{Handled, PageQuery, with_repo};
use super::{history, repository};
use crate::http::answer;

type Place = (String, String, String);

/// Returns a branch with its classic protection, as readers see it.
pub(super) async fn branch(
    State(hub): State<Arc<Hub>>,
    _caller: Caller,
    Path((owner, name, branch)): Path<Place>,
) -> Handled {
    with_repo(&hub, &owner, &name, |repo| {
        let sha = repository::branches(&repo.path)
            .remove(&branch)
            .ok_or_else(not_found)?;
        let head = history::commit(&repo.path, &sha).map_err(|_| not_found())?;
        Ok(answer(StatusCode::OK, repo.branch_json(&branch, &head, &hub.url)))
    })
}

/// Lists the ruleset rules that match a branch name. The branch need not exist.
pub(super) async fn rules(
    State(hub): State<Arc<Hub>>,
    _caller: Caller,
    uri: OriginalUri,
    Path((owner, name, branch)): Path<Place>,
    Query(page): Query<PageQuery>,
) -> Handled {
    with_repo(&hub, &owner, &name, |repo| {
        Ok(page.answer(&hub, &uri.0, repo.rules_json(&branch)))
    })
}

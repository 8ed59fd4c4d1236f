//! Branches and what they ask for before a merge.

use std::sync::Arc;

use axum::extract::{OriginalUri, Path, Query, State};
use axum::http::StatusCode;

use super::auth::{Caller, not_found};
use super::hub::Hub;
use super::rest::{Handled, PageQuery, with_repo};
use super::{history, repository};
use crate::http::answer;

type Place = (String, String, String);

/// The classic protection, as everybody with read access sees it.
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

/// The rules of rulesets that hold for a branch, be there such a branch or not.
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

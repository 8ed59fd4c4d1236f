//! Branches and what they ask for before a merge.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::json;

use super::auth::{Caller, not_found};
use super::hub::Hub;
use super::rest::{Handled, with_repo};
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

/// The rules of rulesets; the stand-in has none.
pub(super) async fn rules(
    State(hub): State<Arc<Hub>>,
    _caller: Caller,
    Path((owner, name, _branch)): Path<Place>,
) -> Handled {
    with_repo(&hub, &owner, &name, |_| Ok(answer(StatusCode::OK, json!([]))))
}

//! Name and role of the caller.

use api::types::{CallerView, ProblemView};
use axum::{Json, extract::State};

use super::{ApiProblem, ApiState, ViewerProof};

/// Shows the name and the role of the caller, for pages that name their user.
#[utoipa::path(get, path = "/v1/me", security(("bearer" = [])),
    responses((status = 200, body = CallerView), (status = 401, body = ProblemView)))]
pub(super) async fn show_caller(
    ViewerProof(caller): ViewerProof,
    State(state): State<ApiState>,
) -> Result<Json<CallerView>, ApiProblem> {
    // Like every route, it answers only when the queue is connected: a login then leads to working pages.
    state.router()?;
    Ok(Json(CallerView {
        is_limited: !caller.scope.is_all(),
        name: caller.name,
        role: caller.role,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }))
}

//! When the accounts of the services have to be seen to.

use api::types::CredentialView;
use axum::{Json, extract::State};

use super::{ApiState, Problem, Viewer};

/// Shows when credentials of the services end, the first one first, as far as their settings say so. Nothing of the credentials
/// themselves is known here. They concern everybody, so a limited token is told of none.
#[utoipa::path(get, path = "/v1/credentials", security(("bearer" = [])),
    responses((status = 200, body = Vec<CredentialView>)))]
pub(super) async fn list(
    Viewer(caller): Viewer,
    State(state): State<ApiState>,
) -> Result<Json<Vec<CredentialView>>, Problem> {
    let router = state.router()?;
    if !caller.scope.is_all() {
        return Ok(Json(Vec::new()));
    }
    let (ends, now) = (router.queue.credential_ends().await?, bootstrap::now());
    let views = ends.iter().map(|end| CredentialView::of(end, now));
    Ok(Json(views.collect()))
}

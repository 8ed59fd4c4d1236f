//! Expiry times of the services' credentials.

use api::types::CredentialView;
use axum::{Json, extract::State};

use super::{ApiProblem, ApiState, ViewerProof};

/// Lists expiry times of the services' credentials, earliest first, as far as the settings contain them.
///
/// The API knows nothing of the credentials themselves. A limited token gets an empty list, because credentials concern the
/// whole installation.
#[utoipa::path(get, path = "/v1/credentials", security(("bearer" = [])),
    responses((status = 200, body = Vec<CredentialView>)))]
pub(super) async fn list_credentials(
    ViewerProof(caller): ViewerProof,
    State(state): State<ApiState>,
) -> Result<Json<Vec<CredentialView>>, ApiProblem> {
    let router = state.router()?;
    if !caller.scope.is_all() {
        return Ok(Json(Vec::new()));
    }
    let (ends, now) = (
        router.queue.credential_ends().await?,
        bootstrap::read_wall_clock(),
    );
    let views = ends.iter().map(|end| CredentialView::of(end, now));
    Ok(Json(views.collect()))
}

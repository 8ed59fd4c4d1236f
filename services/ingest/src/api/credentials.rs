//! Expiry times of the services' credentials.

use api::types::CredentialView;
use axum::{Json, extract::State};

use super::{ApiState, Problem, Viewer};

/// Lists expiry times of the services' credentials, earliest first, as far as the settings contain them.
///
/// The API knows nothing of the credentials themselves. A limited token gets an empty list, because credentials concern the
/// whole installation.
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

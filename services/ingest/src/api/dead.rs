//! Dead letters.

use axum::{Json, extract::State};

use super::{ApiState, Problem, Viewer, types::DeadView};

const LISTED: usize = 200;

/// Lists what could not be handled, newest last, at most 200.
#[utoipa::path(get, path = "/v1/dead", security(("bearer" = [])),
    responses((status = 200, body = Vec<DeadView>)))]
pub(super) async fn list(_: Viewer, State(state): State<ApiState>) -> Result<Json<Vec<DeadView>>, Problem> {
    let letters = state.router()?.queue.dead_letters().list(LISTED).await?;
    let view = |(sequence, letter): (u64, queue::DeadLetter)| DeadView {
        sequence,
        what: letter.what,
        id: letter.id,
        ticket: letter.ticket.map(|ticket| ticket.to_string()),
        reason: letter.reason,
        at: letter.at.to_string(),
    };
    Ok(Json(letters.into_iter().map(view).collect()))
}

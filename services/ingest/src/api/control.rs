//! Global stop of all planners.

use api::types::{DryRun, ProblemView, StopAllView};
use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use domain::StopAll;
use queue::{KeyValueBucket, TypedTable};

use super::{
    ApiProblem, ApiQuery, ApiState, InstallationAdminProof, ViewerProof, decisions::respond_to_dry_run,
};

/// Stops every planner within seconds. Steps in progress are interrupted, nothing is lost, and everything else
/// stays in the queue.
#[utoipa::path(post, path = "/v1/stop-all", params(DryRun), security(("bearer" = [])),
    responses((status = 200, body = StopAllView, description = "With `dry_run` what would happen."), (status = 403, body = ProblemView)))]
pub(super) async fn stop_all(
    InstallationAdminProof(caller): InstallationAdminProof,
    State(state): State<ApiState>,
    ApiQuery(DryRun { dry_run }): ApiQuery<DryRun>,
) -> Result<Response, ApiProblem> {
    let table = open_table(&state)?;
    let known = table.get(StopAll::KEY).await?;
    if dry_run {
        let stops = known.is_none().then(|| "stop every planner".to_owned());
        return Ok(respond_to_dry_run(stops));
    }
    // A repeated stop keeps the first record, with its author and time.
    let record = match known {
        Some((record, _)) => record,
        None => {
            let record = StopAll {
                by: caller.name,
                at: bootstrap::read_wall_clock(),
            };
            match table.put(StopAll::KEY, &record, None).await {
                Ok(_) => {
                    tracing::warn!(by = record.by, "every planner is asked to stop");
                    record
                }
                Err(error @ queue::Error::Conflict) => {
                    // Another caller stopped them at the same time, and has the record.
                    let (record, _) = table.get(StopAll::KEY).await?.ok_or(error)?;
                    record
                }
                Err(error) => return Err(error.into()),
            }
        }
    };
    Ok(Json(build_view(record)).into_response())
}

/// Shows whether all planners are stopped.
#[utoipa::path(get, path = "/v1/stop-all", security(("bearer" = [])),
    responses((status = 200, body = StopAllView)))]
pub(super) async fn show_stop_all(
    _: ViewerProof,
    State(state): State<ApiState>,
) -> Result<Json<StopAllView>, ApiProblem> {
    let record = open_table(&state)?.get(StopAll::KEY).await?;
    Ok(Json(
        record.map(|(record, _)| build_view(record)).unwrap_or_default(),
    ))
}

/// Lets the planners continue where they stopped.
#[utoipa::path(delete, path = "/v1/stop-all", params(DryRun), security(("bearer" = [])),
    responses((status = 200, body = StopAllView, description = "With `dry_run` what would happen."), (status = 403, body = ProblemView)))]
pub(super) async fn resume_planners(
    InstallationAdminProof(caller): InstallationAdminProof,
    State(state): State<ApiState>,
    ApiQuery(DryRun { dry_run }): ApiQuery<DryRun>,
) -> Result<Response, ApiProblem> {
    let table = open_table(&state)?;
    // An unreadable record stops the planners too, so it can be deleted as well.
    let revision = table.find(StopAll::KEY).await?.map(|found| found.revision());
    if dry_run {
        let resumes = revision.map(|_| "let every planner continue".to_owned());
        return Ok(respond_to_dry_run(resumes));
    }
    if let Some(revision) = revision {
        match table.delete_at(StopAll::KEY, revision).await {
            // Another caller resumed them at the same time, or stopped them again. A newer stop stays.
            Err(queue::Error::Conflict) if table.find(StopAll::KEY).await?.is_some() => {
                return Err(ApiProblem::Conflict(
                    "the planners were stopped again meanwhile; check who stopped them, then repeat the request"
                        .to_owned(),
                ));
            }
            Ok(()) | Err(queue::Error::Conflict) => {}
            Err(error) => return Err(error.into()),
        }
    }
    tracing::warn!(by = caller.name, "every planner may continue");
    Ok(Json(StopAllView::default()).into_response())
}

fn open_table(state: &ApiState) -> Result<TypedTable<StopAll>, ApiProblem> {
    Ok(state.router()?.queue.table(KeyValueBucket::Control))
}

fn build_view(record: StopAll) -> StopAllView {
    StopAllView {
        on: true,
        by: Some(record.by),
        at: Some(record.at.to_string()),
    }
}

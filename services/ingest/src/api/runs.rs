//! Runs and their journals.

use api::{
    types::{JournalQuery, ProblemView, RunState, RunView, RunsQuery},
    view::TimelineView,
};
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use domain::{Entry, Job, Overview, RepairResult, Row, RunId, RunStatus, RunSummary, TicketKey};
use queue::Bucket;

use super::{
    ApiState, Problem, Viewer,
    auth::{InScope, OfTicket},
    known_runs::Wanted,
};
use crate::router::Router;

/// Lists runs, newest first.
#[utoipa::path(get, path = "/v1/runs", params(RunsQuery), security(("bearer" = [])),
    responses((status = 200, body = Vec<RunView>), (status = 401, body = ProblemView)))]
pub(super) async fn list(
    Viewer(caller): Viewer,
    State(state): State<ApiState>,
    query: Result<Query<RunsQuery>, QueryRejection>,
) -> Result<Json<Vec<RunView>>, Problem> {
    let Query(query) = query?;
    let wanted = Wanted::new(query, caller.scope)?;
    Ok(Json(state.known_runs()?.list(&wanted).await?))
}

/// Shows one run.
#[utoipa::path(get, path = "/v1/runs/{id}", params(("id" = String, Path, description = "Percent-encoded run id.")),
    security(("bearer" = [])),
    responses((status = 200, body = RunView), (status = 404, body = ProblemView)))]
pub(super) async fn show(
    InScope(_viewer, run): InScope<Viewer, RunId>,
    State(state): State<ApiState>,
) -> Result<Json<RunView>, Problem> {
    let router = state.router()?;
    let mut view = find(router, &run).await?;
    let entries = router.queue.journal().read(&run).await?;
    let entries = || entries.iter().map(|(_, entry)| entry);
    view.overview = Overview::of(&run, entries()).as_ref().map(Into::into);
    if view.job == Job::FixCi && view.status == RunState::Finished {
        view.repair = RepairResult::of(entries());
    }
    Ok(Json(view))
}

/// Gives the journal of one run as people read it: a line for each entry, in the words of the console and the command line.
#[utoipa::path(get, path = "/v1/runs/{id}/timeline",
    params(("id" = String, Path, description = "Percent-encoded run id."), JournalQuery),
    security(("bearer" = [])),
    responses((status = 200, body = TimelineView), (status = 404, body = ProblemView)))]
pub(super) async fn timeline(
    InScope(_viewer, run): InScope<Viewer, RunId>,
    State(state): State<ApiState>,
    query: Result<Query<JournalQuery>, QueryRejection>,
) -> Result<Json<TimelineView>, Problem> {
    let Query(query) = query?;
    let entries = entries(state.router()?, &run, &query).await?;
    Ok(Json(TimelineView::of(&entries)))
}

/// Gives the journal of one run: an array of entries.
#[utoipa::path(get, path = "/v1/runs/{id}/journal",
    params(("id" = String, Path, description = "Percent-encoded run id."), JournalQuery),
    security(("bearer" = [])),
    responses((status = 200, body = Vec<Object>), (status = 404, body = ProblemView)))]
pub(super) async fn journal(
    InScope(_viewer, run): InScope<Viewer, RunId>,
    State(state): State<ApiState>,
    query: Result<Query<JournalQuery>, QueryRejection>,
) -> Result<Json<Vec<Entry>>, Problem> {
    let Query(query) = query?;
    Ok(Json(entries(state.router()?, &run, &query).await?))
}

async fn entries(router: &Router, run: &RunId, query: &JournalQuery) -> Result<Vec<Entry>, Problem> {
    let (from, limit) = (query.from.unwrap_or(0), query.limit.unwrap_or(usize::MAX));
    let entries = router.queue.journal().read(run).await?;
    if entries.is_empty() {
        find(router, run).await?;
    }
    let entries = entries.into_iter().map(|(_, entry)| entry);
    Ok(entries
        .filter(|entry| entry.position >= from)
        .take(limit)
        .collect())
}

/// `ENG-12`, `jira:ENG-12` or `github:acme/shop#7`.
pub(super) fn ticket_key(text: &str) -> Result<TicketKey, Problem> {
    Ok(if text.contains(':') {
        text.parse()?
    } else {
        TicketKey::jira(text)?
    })
}

/// The run, from the ticket's row, else from its journal, else from the trigger that will open it.
pub(super) async fn find(router: &Router, run: &RunId) -> Result<RunView, Problem> {
    let table = router.queue.table::<Row>(Bucket::Tickets);
    let row = table.get(&run.ticket().to_string()).await?.map(|(row, _)| row);
    if let Some(summary) = row.as_ref().and_then(|row| row.run(run)) {
        return Ok(summary.into());
    }
    let entries = router.queue.journal().read(run).await?;
    if let Some(overview) = Overview::of(run, entries.iter().map(|(_, entry)| entry)) {
        return Ok((&overview.summary()).into());
    }
    let before = run.sequence().checked_sub(1).ok_or_else(|| run.unknown())?;
    let triggers = router
        .queue
        .triggers()
        .read_each_after(run.ticket(), before)
        .await?;
    let opener = triggers
        .into_iter()
        .find(|(sequence, _)| *sequence == run.sequence());
    let trigger = opener
        .and_then(|(_, trigger)| trigger.ok())
        .ok_or_else(|| run.unknown())?;
    let job = trigger.reason.job().ok_or_else(|| run.unknown())?;
    let queued = RunSummary {
        id: run.clone(),
        job,
        status: RunStatus::Queued,
        started_at: trigger.at,
        finished_at: None,
        turns: 0,
    };
    Ok((&queued).into())
}

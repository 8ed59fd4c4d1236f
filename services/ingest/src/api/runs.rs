//! Runs and their journals.

use api::types::{JournalQuery, ProblemView, RunState, RunView, RunsQuery};
use axum::{
    Json,
    extract::{Path, Query, State, rejection::QueryRejection},
};
use domain::{Entry, Fact, Job, RepairResult, Row, RunId, RunStatus, RunSummary, TicketKey};
use queue::Bucket;

use super::{ApiState, Problem, Viewer};
use crate::router::Router;

const LISTED: usize = 100;
const MOST_LISTED: usize = 1_000;

/// Lists runs, newest first.
#[utoipa::path(get, path = "/v1/runs", params(RunsQuery), security(("bearer" = [])),
    responses((status = 200, body = Vec<RunView>), (status = 401, body = ProblemView)))]
pub(super) async fn list(
    _: Viewer,
    State(state): State<ApiState>,
    query: Result<Query<RunsQuery>, QueryRejection>,
) -> Result<Json<Vec<RunView>>, Problem> {
    let Query(query) = query?;
    let table = state.router()?.queue.table::<Row>(Bucket::Tickets);
    let rows = match &query.ticket {
        Some(ticket) => Vec::from_iter(
            table
                .get(&ticket_key(ticket)?.to_string())
                .await?
                .map(|(row, _)| row),
        ),
        None => table.list().await?.into_iter().map(|(_, row)| row).collect(),
    };
    let mut runs: Vec<_> = rows.iter().flat_map(|row| &row.runs).collect();
    runs.sort_by_key(|run| std::cmp::Reverse((run.started_at, run.id.sequence())));
    let views = runs.into_iter().map(RunView::from);
    let wanted = views.filter(|view| query.status.is_none_or(|status| status == view.status));
    Ok(Json(
        wanted
            .take(query.limit.unwrap_or(LISTED).min(MOST_LISTED))
            .collect(),
    ))
}

/// Shows one run.
#[utoipa::path(get, path = "/v1/runs/{id}", params(("id" = String, Path, description = "Percent-encoded run id.")),
    security(("bearer" = [])),
    responses((status = 200, body = RunView), (status = 404, body = ProblemView)))]
pub(super) async fn show(
    _: Viewer,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<RunView>, Problem> {
    let (router, run) = (state.router()?, id.parse()?);
    let mut view = find(router, &run).await?;
    if view.job == Job::FixCi && view.status == RunState::Finished {
        let entries = router.queue.journal().read(&run).await?;
        view.repair = RepairResult::of(entries.iter().map(|(_, entry)| entry));
    }
    Ok(Json(view))
}

/// Gives the journal of one run: an array of entries.
#[utoipa::path(get, path = "/v1/runs/{id}/journal",
    params(("id" = String, Path, description = "Percent-encoded run id."), JournalQuery),
    security(("bearer" = [])),
    responses((status = 200, body = Vec<Object>), (status = 404, body = ProblemView)))]
pub(super) async fn journal(
    _: Viewer,
    State(state): State<ApiState>,
    Path(id): Path<String>,
    query: Result<Query<JournalQuery>, QueryRejection>,
) -> Result<Json<Vec<Entry>>, Problem> {
    let from = query?.0.from.unwrap_or(0);
    let run = id.parse()?;
    let router = state.router()?;
    let entries = router.queue.journal().read(&run).await?;
    if entries.is_empty() {
        find(router, &run).await?;
    }
    Ok(Json(
        entries
            .into_iter()
            .map(|(_, entry)| entry)
            .filter(|entry| entry.position >= from)
            .collect(),
    ))
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
    if let Some(summary) = from_journal(run, entries.iter().map(|(_, entry)| entry)) {
        return Ok((&summary).into());
    }
    let before = run.sequence().checked_sub(1).ok_or_else(|| unknown(run))?;
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
        .ok_or_else(|| unknown(run))?;
    let job = trigger.reason.job().ok_or_else(|| unknown(run))?;
    Ok((&summary(run, job, RunStatus::Queued, trigger.at)).into())
}

fn unknown(run: &RunId) -> Problem {
    Problem::NotFound(format!("run {run} does not exist"))
}

fn summary(run: &RunId, job: Job, status: RunStatus, at: domain::Timestamp) -> RunSummary {
    RunSummary {
        id: run.clone(),
        job,
        status,
        started_at: at,
        finished_at: None,
        turns: 0,
    }
}

fn from_journal<'a>(run: &RunId, entries: impl Iterator<Item = &'a Entry>) -> Option<RunSummary> {
    let mut found: Option<RunSummary> = None;
    for entry in entries {
        match (&entry.fact, &mut found) {
            (Fact::RunStarted { trigger }, _) => {
                found = Some(summary(run, trigger.reason.job()?, RunStatus::Active, entry.at));
            }
            (Fact::ModelReplied { .. }, Some(found)) => found.turns += 1,
            (Fact::RunFinished { reason }, Some(found)) => {
                found.status = RunStatus::Finished {
                    reason: reason.clone(),
                };
                found.finished_at = Some(entry.at);
            }
            _ => {}
        }
    }
    found
}

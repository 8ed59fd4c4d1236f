//! Runs and their journals.

use std::pin::pin;

use api::{
    types::{JournalQuery, ProblemView, RunState, RunView, RunsQuery},
    view::{EntryView, TimelineView},
};
use axum::{Json, extract::State, response::Response};
use domain::{Fact, Job, JournalEntry, RepairResult, RunId, RunOverview, RunStatus, RunSummary, TicketRow};
use futures::{Stream, StreamExt as _, TryStreamExt as _, future};
use queue::{KeyValueBucket, RunJournals};

use super::{
    ApiProblem, ApiQuery, ApiState, ViewerProof,
    auth::InScope,
    journal_reads::answer_array,
    known_runs::RunListFilter,
    scope::{TokenCaller, TokenScope},
    ticket_key::{TicketScoped as _, parse_ticket_key},
};

/// Lists runs, newest first.
#[utoipa::path(get, path = "/v1/runs", params(RunsQuery), security(("bearer" = [])),
    responses((status = 200, body = Vec<RunView>), (status = 401, body = ProblemView)))]
pub(super) async fn list_runs(
    ViewerProof(caller): ViewerProof,
    State(state): State<ApiState>,
    ApiQuery(mut query): ApiQuery<RunsQuery>,
) -> Result<Json<Vec<RunView>>, ApiProblem> {
    let mut scope = caller.scope;
    if let Some(text) = &query.ticket {
        let named = parse_ticket_key(text)?;
        let identity = state.router()?.facts.keys().identity(&named).await?;
        let present = identity.as_ref().map_or(&named, |identity| &identity.key);
        // A moved ticket belongs to its present project, whatever the key of its records is.
        if !scope.has_ticket(&named) || !scope.has_ticket(present) {
            return Ok(Json(Vec::new()));
        }
        scope = TokenScope::default();
        let records = identity.map_or(named, |identity| identity.ticket);
        query.ticket = Some(records.to_string());
    }
    let wanted = RunListFilter::new(query, scope)?;
    Ok(Json(state.known_runs()?.list(&wanted).await?))
}

/// Shows one run.
#[utoipa::path(get, path = "/v1/runs/{id}", params(("id" = String, Path, description = "Percent-encoded run id.")),
    security(("bearer" = [])),
    responses((status = 200, body = RunView), (status = 404, body = ProblemView), (status = 429, body = ProblemView)))]
pub(super) async fn show_run(
    InScope(ViewerProof(caller), run): InScope<ViewerProof, RunId>,
    State(state): State<ApiState>,
) -> Result<Json<RunView>, ApiProblem> {
    let mut view = find_run(&state, &caller, &run).await?;
    // Reads of journals are limited, because they share the memory with webhooks.
    let _permit = state.reads.begin(&caller.name).await?;
    let journal = state.router()?.queue.journal();
    if let Some(overview) = read_overview(&journal, &run).await? {
        // The row has the turns of the last park, so the journal is ahead of it while the run is active.
        view.turns = view.turns.max(overview.turns);
        view.overview = Some((&overview).into());
    }
    if view.job == Job::FixCi && view.status == RunState::Finished {
        let entries = journal.read_kept(&run, is_of_repair).await?;
        view.repair = RepairResult::of(&entries);
    }
    Ok(Json(view))
}

/// True for a journal entry about the repair of failed checks.
const fn is_of_repair(entry: &JournalEntry) -> bool {
    matches!(
        entry.fact,
        Fact::RunStarted { .. } | Fact::ReportRequested { .. } | Fact::RunFinished { .. }
    )
}

/// Overview of a run from its journal; `None` without a journal.
async fn read_overview(journal: &RunJournals, run: &RunId) -> Result<Option<RunOverview>, queue::Error> {
    let mut entries = pin!(journal.entries(run));
    let Some((_, first)) = entries.try_next().await? else {
        return Ok(None);
    };
    let mut overview = RunOverview::begin(run, &first);
    while let (Some(known), Some((_, entry))) = (&mut overview, entries.try_next().await?) {
        known.apply(&entry);
    }
    Ok(overview)
}

/// Returns the journal of one run for people: one line per entry, with the wording of the console and the command line.
#[utoipa::path(get, path = "/v1/runs/{id}/timeline",
    params(("id" = String, Path, description = "Percent-encoded run id."), JournalQuery),
    security(("bearer" = [])),
    responses((status = 200, body = TimelineView), (status = 404, body = ProblemView), (status = 429, body = ProblemView)))]
pub(super) async fn get_run_timeline(
    InScope(ViewerProof(caller), run): InScope<ViewerProof, RunId>,
    State(state): State<ApiState>,
    ApiQuery(query): ApiQuery<JournalQuery>,
) -> Result<Response, ApiProblem> {
    find_run(&state, &caller, &run).await?;
    let permit = state.reads.begin(&caller.name).await?;
    let entries = select_entries(&state.router()?.queue.journal(), &run, &query);
    let entries = entries.map_ok(|entry| EntryView::from(&entry));
    let head = format!("{{\"version\":{},\"entries\":[", TimelineView::VERSION);
    answer_array(permit, (head, "]}"), entries.boxed()).await
}

/// Returns the journal of one run: an array of entries.
#[utoipa::path(get, path = "/v1/runs/{id}/journal",
    params(("id" = String, Path, description = "Percent-encoded run id."), JournalQuery),
    security(("bearer" = [])),
    responses((status = 200, body = Vec<Object>), (status = 404, body = ProblemView), (status = 429, body = ProblemView)))]
pub(super) async fn get_run_journal(
    InScope(ViewerProof(caller), run): InScope<ViewerProof, RunId>,
    State(state): State<ApiState>,
    ApiQuery(query): ApiQuery<JournalQuery>,
) -> Result<Response, ApiProblem> {
    find_run(&state, &caller, &run).await?;
    let permit = state.reads.begin(&caller.name).await?;
    let entries = select_entries(&state.router()?.queue.journal(), &run, &query);
    answer_array(permit, ("[".to_owned(), "]"), entries.boxed()).await
}

/// Requested entries. The stream stops reading after the last one.
fn select_entries(
    journal: &RunJournals,
    run: &RunId,
    query: &JournalQuery,
) -> impl Stream<Item = Result<JournalEntry, queue::Error>> + Send + use<> {
    let (from, limit) = (query.from.unwrap_or(0), query.limit.unwrap_or(usize::MAX));
    let entries = journal.entries(run).map_ok(|(_, entry)| entry);
    let is_wanted = move |entry: &JournalEntry| future::ready(entry.position >= from);
    entries.try_filter(is_wanted).take(limit)
}

/// Run from the ticket's row, else from its journal, else from the trigger that will start it.
pub(super) async fn find_run(
    state: &ApiState,
    caller: &TokenCaller,
    run: &RunId,
) -> Result<RunView, ApiProblem> {
    let router = state.router()?;
    let table = router.queue.table::<TicketRow>(KeyValueBucket::Tickets);
    let row = table.get(&run.ticket().to_string()).await?.map(|(row, _)| row);
    if let Some(summary) = row.as_ref().and_then(|row| row.run(run)) {
        return Ok(summary.into());
    }
    let permit = state.reads.begin(&caller.name).await?;
    if let Some(overview) = read_overview(&router.queue.journal(), run).await? {
        return Ok((&overview.summary()).into());
    }
    drop(permit);
    // The trigger at the run's sequence starts it, so the read begins directly before it.
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

//! Decisions of users about runs and tickets: stop, retry.

use api::types::{Accepted, DryRun, ProblemView, RunState, Would};
use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use domain::{Job, RunId, TextMarkup, TicketKey, TicketRow, TriggerChannel, TriggerKey, TriggerReason};
use queue::KeyValueBucket;

use super::{
    ApiProblem, ApiQuery, ApiState, OperatorProof, auth::InScope, runs::find_run, ticket_key::TicketScoped,
};
use crate::{
    events::{retry::RetryEvent, stop::StopEvent},
    router::{EventDecision, EventRouter, outcome::EventOutcome},
};

pub(super) type AcceptedAnswer = Result<(StatusCode, Json<Accepted>), ApiProblem>;

/// Stops one run.
#[utoipa::path(post, path = "/v1/runs/{id}/stop",
    params(("id" = String, Path, description = "Percent-encoded run id."), DryRun), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 200, body = Would), (status = 403, body = ProblemView),
        (status = 404, body = ProblemView), (status = 409, body = ProblemView, description = "The run is over.")))]
pub(super) async fn stop_run(
    InScope(OperatorProof(caller), run): InScope<OperatorProof, RunId>,
    State(state): State<ApiState>,
    ApiQuery(DryRun { dry_run }): ApiQuery<DryRun>,
) -> Result<Response, ApiProblem> {
    let router = state.router()?;
    let found = find_run(&state, &caller, &run).await?;
    if found.status == RunState::Finished {
        return Err(ApiProblem::Conflict(format!("run {run} is over")));
    }
    if dry_run {
        return Ok(respond_to_dry_run([in_words(&run, found.job)]));
    }
    // The key makes repeated stops of a run one trigger.
    let (ticket, key) = (run.ticket().clone(), format!("stop:{run}"));
    Ok(request_stop(router, ticket, key, Some(run), caller.name)
        .await?
        .into_response())
}

/// Stops every live run of a ticket.
#[utoipa::path(post, path = "/v1/tickets/{key}/stop",
    params(("key" = String, Path, description = "Percent-encoded ticket key."), DryRun), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 200, body = Would), (status = 403, body = ProblemView),
        (status = 404, body = ProblemView)))]
pub(super) async fn stop_ticket(
    InScope(OperatorProof(caller), ticket): InScope<OperatorProof, TicketKey>,
    State(state): State<ApiState>,
    ApiQuery(DryRun { dry_run }): ApiQuery<DryRun>,
) -> Result<Response, ApiProblem> {
    let router = state.router()?;
    let rows = router.queue.table::<TicketRow>(KeyValueBucket::Tickets);
    // A ticket has triggers before a planner creates its row, and a row after its triggers have aged out.
    let has_triggers = router.queue.triggers().last_sequence(&ticket).await?.is_some();
    if !has_triggers && rows.find(&ticket.to_string()).await?.is_none() {
        return Err(ticket.unknown());
    }
    if dry_run {
        let (row, _) = rows.get(&ticket.to_string()).await?.unwrap_or_default();
        // A stop of the ticket leaves maintenance after a merge, which must complete.
        let stopped = row.pending.iter().filter(|live| !live.lane.must_complete());
        return Ok(respond_to_dry_run(
            stopped.map(|live| in_words(&live.run, live.job)),
        ));
    }
    // Each stop of a ticket is a new trigger, because runs may have started since the last one.
    let key = format!("stop:{}", uuid::Uuid::new_v4());
    Ok(request_stop(router, ticket, key, None, caller.name)
        .await?
        .into_response())
}

async fn request_stop(
    router: &EventRouter,
    ticket: TicketKey,
    key: String,
    run: Option<RunId>,
    by: String,
) -> AcceptedAnswer {
    let stopped = StopEvent {
        ticket,
        key: TriggerKey::new(key),
        at: bootstrap::read_wall_clock(),
        by,
        run,
    };
    let outcome = Box::pin(router.take(&stopped, TriggerChannel::Api)).await?;
    respond_accepted(&stopped.ticket, &stopped.key, &outcome)
}

fn in_words(run: &RunId, job: Job) -> String {
    format!("stop run {run} ({job})")
}

/// Retries: a waiting run at once, a quarantined ticket from its current state, a failed job from the start.
#[utoipa::path(post, path = "/v1/tickets/{key}/retry",
    params(("key" = String, Path, description = "Percent-encoded ticket key."), DryRun), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 200, body = Would), (status = 403, body = ProblemView),
        (status = 409, body = ProblemView, description = "Nothing has failed.")))]
pub(super) async fn retry_ticket(
    InScope(OperatorProof(caller), ticket): InScope<OperatorProof, TicketKey>,
    State(state): State<ApiState>,
    ApiQuery(DryRun { dry_run }): ApiQuery<DryRun>,
) -> Result<Response, ApiProblem> {
    let router = state.router()?;
    if dry_run {
        return Ok(respond_to_dry_run([
            would_retry(router, ticket, caller.name).await?
        ]));
    }
    Ok(request_retry(router, ticket, caller.name).await?.into_response())
}

/// Retries a ticket on behalf of an API caller.
pub(super) async fn request_retry(router: &EventRouter, ticket: TicketKey, actor: String) -> AcceptedAnswer {
    let retry = asked_for(ticket, actor);
    let outcome = Box::pin(router.take(&retry, TriggerChannel::Api)).await?;
    respond_accepted(&retry.ticket, &retry.key, &outcome)
}

/// Description of a retry for a dry run.
pub(super) async fn would_retry(
    router: &EventRouter,
    ticket: TicketKey,
    actor: String,
) -> Result<String, ApiProblem> {
    let retry = asked_for(ticket, actor);
    match Box::pin(router.judge(&retry, TriggerChannel::Api)).await? {
        EventDecision::Trigger(follows) => Ok(match &follows.reason {
            TriggerReason::JobRequested(job) => format!("start {} on {} again", job.job, retry.ticket),
            TriggerReason::Skipped(reason) => {
                format!(
                    "leave {} alone: {}",
                    retry.ticket,
                    reason.words(&TextMarkup::PLAIN)
                )
            }
            TriggerReason::PullRequest(_)
            | TriggerReason::ReviewWithdrawn { .. }
            | TriggerReason::TicketLeft(_)
            | TriggerReason::StopRequested { .. }
            | TriggerReason::RetryRequested
            | TriggerReason::Decided(_)
            | TriggerReason::ReportSettled(_)
            | TriggerReason::CostAsked { .. }
            | TriggerReason::HelpAsked { .. }
            | TriggerReason::NewsArrived(_) => format!("continue with {} where it waits", retry.ticket),
        }),
        EventDecision::Outcome(outcome) => Err(ApiProblem::Conflict(outcome.why_nothing().to_owned())),
    }
}

fn asked_for(ticket: TicketKey, by: String) -> RetryEvent {
    RetryEvent {
        ticket,
        // Each retry is a new trigger, because the ticket may fail again.
        key: TriggerKey::new(format!("retry:{}", uuid::Uuid::new_v4())),
        at: bootstrap::read_wall_clock(),
        by,
    }
}

/// Response to a dry run.
pub(super) fn respond_to_dry_run(lines: impl IntoIterator<Item = String>) -> Response {
    let would = lines.into_iter().collect();
    Json(Would { would }).into_response()
}

/// Response with the sequence of a trigger, or a conflict with the reason why there is no trigger.
pub(super) fn respond_accepted(
    ticket: &TicketKey,
    key: &TriggerKey,
    outcome: &EventOutcome,
) -> AcceptedAnswer {
    let Some(sequence) = outcome.sequence() else {
        return Err(ApiProblem::Conflict(outcome.why_nothing().to_owned()));
    };
    let body = Accepted {
        ticket: ticket.to_string(),
        key: key.as_str().to_owned(),
        sequence,
    };
    Ok((StatusCode::ACCEPTED, Json(body)))
}

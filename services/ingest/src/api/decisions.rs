//! What people decide about runs and tickets: stop, try again.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use domain::{Reason, RunId, Source, TicketKey, Trigger, TriggerKey};
use queue::Appended;

use super::{
    ApiState, Operator, Problem,
    runs::{find, ticket_key},
    types::{Accepted, ProblemView, RunState},
};
use crate::{outcome::Outcome, router::Router, said::Order};

pub(super) type Answer = Result<(StatusCode, Json<Accepted>), Problem>;

/// Stops one run.
#[utoipa::path(post, path = "/v1/runs/{id}/stop",
    params(("id" = String, Path, description = "Percent-encoded run id.")), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 403, body = ProblemView), (status = 404, body = ProblemView),
        (status = 409, body = ProblemView, description = "The run is over.")))]
pub(super) async fn stop_run(
    Operator(caller): Operator,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Answer {
    let run: RunId = id.parse()?;
    let router = state.router()?;
    if find(router, &run).await?.status == RunState::Finished {
        return Err(Problem::Conflict(format!("run {run} is over")));
    }
    let reason = Reason::StopRequested {
        run: Some(run.clone()),
    };
    Ok(
        append(router, run.ticket(), format!("stop:{run}"), caller.name, reason)
            .await?
            .1,
    )
}

/// Stops every live run of a ticket.
#[utoipa::path(post, path = "/v1/tickets/{key}/stop",
    params(("key" = String, Path, description = "Percent-encoded ticket key.")), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 403, body = ProblemView), (status = 404, body = ProblemView)))]
pub(super) async fn stop_ticket(
    Operator(caller): Operator,
    State(state): State<ApiState>,
    Path(key): Path<String>,
) -> Answer {
    let ticket = ticket_key(&key)?;
    let router = state.router()?;
    if router.queue.triggers().last_sequence(&ticket).await?.is_none() {
        return Err(Problem::NotFound(format!("nothing is known of {ticket}")));
    }
    let key = format!("stop:{}", uuid::Uuid::new_v4());
    Ok(append(
        router,
        &ticket,
        key,
        caller.name,
        Reason::StopRequested { run: None },
    )
    .await?
    .1)
}

/// Tries again: a waiting run at once, a quarantined ticket from where it stands, a failed job from the start.
#[utoipa::path(post, path = "/v1/tickets/{key}/retry",
    params(("key" = String, Path, description = "Percent-encoded ticket key.")), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 403, body = ProblemView),
        (status = 409, body = ProblemView, description = "Nothing has failed.")))]
pub(super) async fn retry_ticket(
    Operator(caller): Operator,
    State(state): State<ApiState>,
    Path(key): Path<String>,
) -> Answer {
    retry(state.router()?, ticket_key(&key)?, caller.name).await
}

/// The same for every caller.
pub(super) async fn retry(router: &Router, ticket: TicketKey, actor: String) -> Answer {
    let order = Order {
        ticket,
        key: TriggerKey::new(format!("retry:{}", uuid::Uuid::new_v4())),
        at: bootstrap::now(),
        actor,
        source: Source::Api,
    };
    let (ticket, key) = (order.ticket.to_string(), order.key.as_str().to_owned());
    match Box::pin(router.retry(order)).await? {
        Outcome::Nothing(why) => Err(Problem::Conflict(why)),
        Outcome::NoChecks => Err(Problem::Conflict("no check has reported".to_owned())),
        Outcome::Known(sequence)
        | Outcome::Appended {
            appended: Appended::New(sequence) | Appended::Known(sequence),
            ..
        } => {
            let body = Accepted {
                ticket,
                key,
                sequence,
            };
            Ok((StatusCode::ACCEPTED, Json(body)))
        }
    }
}

pub(super) async fn append(
    router: &Router,
    ticket: &TicketKey,
    key: String,
    actor: String,
    reason: Reason,
) -> Result<(Appended, (StatusCode, Json<Accepted>)), Problem> {
    let trigger = Trigger {
        ticket: ticket.clone(),
        key: TriggerKey::new(key.clone()),
        at: bootstrap::now(),
        source: Source::Api,
        actor: Some(actor),
        reason,
    };
    let appended = router.append(&trigger).await?;
    let (Appended::New(sequence) | Appended::Known(sequence)) = appended;
    let body = Accepted {
        ticket: ticket.to_string(),
        key,
        sequence,
    };
    Ok((appended, (StatusCode::ACCEPTED, Json(body))))
}

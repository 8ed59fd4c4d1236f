//! Dispatching jobs.

use axum::{
    Json,
    extract::{State, rejection::JsonRejection},
    http::{HeaderMap, StatusCode},
};
use domain::{Job, Reason, Rules, RunId, Source, TicketKey, TriggerKey};
use queue::Appended;

use super::{
    ApiState, Operator, Problem,
    decisions::append,
    runs::ticket_key,
    tickets::skip_text,
    types::{JobAccepted, JobBody, ProblemView, TextBody},
};
use crate::{
    kinds::{
        Follows,
        work::{self, Work},
    },
    router::Router,
};

/// Starts a job on a ticket, with the ticket's text as it is now. Skip rules hold here too.
#[utoipa::path(post, path = "/v1/jobs", request_body = JobBody, security(("bearer" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "The same key starts the job once.")),
    responses((status = 202, body = JobAccepted), (status = 403, body = ProblemView),
        (status = 404, body = ProblemView, description = "The ticket does not exist."),
        (status = 409, body = ProblemView, description = "A skip rule forbids it."),
        (status = 422, body = ProblemView, description = "No rules for the ticket, or not this kind of job.")))]
pub(super) async fn dispatch(
    Operator(caller): Operator,
    State(state): State<ApiState>,
    headers: HeaderMap,
    body: Result<Json<JobBody>, JsonRejection>,
) -> Result<(StatusCode, Json<JobAccepted>), Problem> {
    let Json(body) = body?;
    let ticket = ticket_key(&body.ticket)?;
    is_startable(body.job)?;
    let router = state.router()?;
    let key = request_key(&headers)?;
    // A repeated request is answered as the first was, whatever the skip rules say by now.
    if let Some(sequence) = router.known(&ticket, &key).await? {
        return Ok(accepted(ticket, &key, sequence));
    }
    let rules = rules(router, &ticket, body.repository.as_deref())?;
    if let Some(text) = text_of_folder(&ticket, body.text)? {
        let reason = in_folder(text, &rules)?;
        let appended = append(router, &ticket, key.as_str().to_owned(), caller.name, reason).await?;
        let (Appended::New(sequence) | Appended::Known(sequence)) = appended.0;
        return Ok(accepted(ticket, &key, sequence));
    }
    let repository = body.repository.as_deref().map(str::parse).transpose()?;
    let work = Work::ordered(
        ticket.clone(),
        key.clone(),
        repository,
        bootstrap::now(),
        caller.name,
    );
    let follows = match Box::pin(router.judge(&work, Source::Api)).await? {
        Ok(Follows {
            reason: Reason::Skipped(reason),
            ..
        }) => return Err(Problem::Conflict(skip_text(&reason))),
        Ok(follows) => follows,
        Err(outcome) => return Err(Problem::Conflict(outcome.why_nothing().to_owned())),
    };
    let appended = router.append(follows.into_trigger(Source::Api)).await?;
    let sequence = appended.sequence().unwrap_or_default();
    Ok(accepted(ticket, &key, sequence))
}

fn is_startable(job: Job) -> Result<(), Problem> {
    match job {
        Job::Implement => Ok(()),
        Job::Triage
        | Job::Answer
        | Job::FixCi
        | Job::AddressReview
        | Job::Review
        | Job::MarkReady
        | Job::Finish
        | Job::BackToDraft
        | Job::Reopen => Err(Problem::Unprocessable(
            "only the job implement can be started here".to_owned(),
        )),
    }
}

/// The text that a ticket of a folder is started with; the others have theirs.
fn text_of_folder(ticket: &TicketKey, text: Option<TextBody>) -> Result<Option<TextBody>, Problem> {
    let problem = match (ticket, &text) {
        (TicketKey::Folder { .. }, None) => "a ticket of a folder is started with its text",
        (TicketKey::Jira { .. } | TicketKey::GitHub { .. }, Some(_)) => "the ticket has a text already",
        (TicketKey::Folder { .. }, Some(_)) | (_, None) => return Ok(text),
    };
    Err(Problem::Unprocessable(problem.to_owned()))
}

/// The job of a folder's ticket, or the skip rule that forbids it.
fn in_folder(text: TextBody, rules: &Rules) -> Result<Reason, Problem> {
    let invalid = |problem: domain::RulesProblem| Problem::Unprocessable(problem.to_string());
    match work::in_folder(text.summary, text.description, rules).map_err(invalid)? {
        Reason::Skipped(reason) => Err(Problem::Conflict(skip_text(&reason))),
        reason => Ok(reason),
    }
}

fn request_key(headers: &HeaderMap) -> Result<TriggerKey, Problem> {
    let Some(header) = headers.get("idempotency-key") else {
        return Ok(TriggerKey::new(format!("api:{}", uuid::Uuid::new_v4())));
    };
    let text = header
        .to_str()
        .ok()
        .filter(|text| !text.is_empty() && text.len() <= 200);
    let text =
        text.ok_or_else(|| Problem::BadRequest("Idempotency-Key must be 1 to 200 characters".to_owned()))?;
    Ok(TriggerKey::new(format!("api:{text}")))
}

fn rules(router: &Router, ticket: &TicketKey, repository: Option<&str>) -> Result<Rules, Problem> {
    let Some(repository) = repository else {
        return Ok(router.rules_for(ticket)?);
    };
    let rules = router.rules.book().for_repository(&repository.parse()?).cloned();
    rules.ok_or_else(|| Problem::Unprocessable(format!("no rules name the repository {repository}")))
}

fn accepted(ticket: TicketKey, key: &TriggerKey, sequence: u64) -> (StatusCode, Json<JobAccepted>) {
    let run = RunId::new(ticket.clone(), sequence).to_string();
    let body = JobAccepted {
        ticket: ticket.to_string(),
        key: key.as_str().to_owned(),
        sequence,
        run,
    };
    (StatusCode::ACCEPTED, Json(body))
}

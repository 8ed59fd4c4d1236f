//! Dispatch of jobs.

use api::types::{JobAccepted, JobBody, JobPlanned, ProblemView, TextBody};
use axum::{
    Json,
    extract::{State, rejection::JsonRejection},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use domain::{
    Job, JobAccess, JobInput, JobSubject, RehearsedJob, RepairResult, RepositoryRules, RequestPlace, RunId,
    TextMarkup, TicketKey, TriggerChannel, TriggerKey, TriggerReason,
};

use super::{
    ApiProblem, ApiState, OperatorProof, context::JobContext, scope::TokenCaller,
    ticket_key::parse_ticket_key,
};
use crate::{
    events::{NewTrigger, dispatch::DispatchEvent},
    policy::job_request,
    router::{EventDecision, EventRouter, outcome::EventOutcome},
};

/// Starts a job on a ticket or a pull request, in their current state. Skip rules apply. With `dry_run` it only describes
/// the job.
#[utoipa::path(post, path = "/v1/jobs", request_body = JobBody, security(("bearer" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "The same key starts the job once.")),
    responses((status = 202, body = JobAccepted),
        (status = 200, body = JobPlanned, description = "What would be started; nothing was. For `fix_ci` \
        where no check failed, the result of that: `{\"fixed\": true, …, \"message\": \"No failed checks\"}`."),
        (status = 403, body = ProblemView),
        (status = 404, body = ProblemView, description = "The ticket does not exist."),
        (status = 409, body = ProblemView, description = "A skip rule forbids it, or there is nothing to do."),
        (status = 422, body = ProblemView, description = "No rules for the ticket, not this kind of job, or a context that \
        does not go with it.")))]
pub(super) async fn dispatch_job(
    OperatorProof(caller): OperatorProof,
    State(state): State<ApiState>,
    headers: HeaderMap,
    body: Result<Json<JobBody>, JsonRejection>,
) -> Result<Response, ApiProblem> {
    let Json(body) = body?;
    let named = parse_ticket_key(&body.ticket)?;
    caller.reaches(&named)?;
    is_startable(&body, &named)?;
    let context = JobContext::of(body.job, body.context.as_ref())?;
    let router = state.router()?;
    let key = request_key(&headers)?;
    let ours = context.about(router, &named).await?;
    let comment = context.comment(&named)?;
    // A job on our pull request runs on the ticket of that pull request, whose log has the run.
    let ticket = match &ours {
        Some(record) => record.ticket.clone(),
        None => router.facts.keys().present_key(&named).await?,
    };
    // Both must be in the scope: the named pull request, and the ticket that it belongs to.
    caller.reaches(&ticket)?;
    // A repeated request gets the answer of the first one, even when a skip rule has changed since.
    if !body.dry_run
        && let Some(sequence) = router.facts.known(&ticket, &key).await?
    {
        let records = router.facts.keys().records_of(&ticket).await?;
        check_known_request(router, &records, sequence, &body).await?;
        return Ok(respond_job_accepted(records, &key, sequence));
    }
    let rules = find_rules(router, &ticket, body.repository.as_deref())?;
    is_in_scope(&caller, &rules, body.repository.as_deref())?;
    let by = caller.name;
    let follows = match text_of_folder(&ticket, body.text)? {
        Some(text) => NewTrigger {
            ticket,
            key: key.clone(),
            at: bootstrap::read_wall_clock(),
            actor: Some(by),
            reason: decide_folder_job(text, &rules)?,
        },
        None => {
            let asked = DispatchEvent {
                ticket,
                ours,
                key: key.clone(),
                at: bootstrap::read_wall_clock(),
                by,
                job: body.job,
                repository: body.repository.as_deref().map(str::parse).transpose()?,
                number: context.number,
                task: context.task,
                comment,
                words: context.words,
            };
            match judge_dispatch(router, &asked).await? {
                EventDecision::Trigger(follows) => *follows,
                EventDecision::Outcome(EventOutcome::NothingFailed) if !body.dry_run => {
                    return Ok(Json(RepairResult::nothing_failed()).into_response());
                }
                EventDecision::Outcome(outcome) => {
                    return Err(ApiProblem::Conflict(outcome.why_nothing().to_owned()));
                }
            }
        }
    };
    if body.dry_run {
        return Ok(Json(describe_planned_job(&follows)?).into_response());
    }
    let follows = if body.mock {
        turn_into_rehearsal(follows)
    } else {
        follows
    };
    let ticket = router.facts.keys().records_of(&follows.ticket).await?;
    let appended = router.append(follows.into_trigger(TriggerChannel::Api)).await?;
    Ok(respond_job_accepted(
        ticket,
        &key,
        appended.sequence().unwrap_or_default(),
    ))
}

/// Refuses a key that belongs to the request of another job on the ticket.
async fn check_known_request(
    router: &EventRouter,
    records: &TicketKey,
    sequence: u64,
    body: &JobBody,
) -> Result<(), ApiProblem> {
    // The read begins directly before the known trigger.
    let before = sequence.saturating_sub(1);
    let read = router.queue.triggers().read_each_after(records, before).await?;
    let found = read.into_iter().find(|(at, _)| *at == sequence);
    let trigger = found.and_then(|(_, trigger)| trigger.ok());
    let Some(TriggerReason::JobRequested(request)) = trigger.map(|trigger| trigger.reason) else {
        return Ok(());
    };
    let rehearsed = request.about.rehearsal().map(|rehearsal| rehearsal.job);
    if rehearsed.is_some() == body.mock && rehearsed.unwrap_or(request.job) == body.job {
        return Ok(());
    }
    Err(ApiProblem::Conflict(
        "this Idempotency-Key belongs to another request; use a new one".to_owned(),
    ))
}

/// Decision about a job request. A skip is a conflict.
async fn judge_dispatch(router: &EventRouter, asked: &DispatchEvent) -> Result<EventDecision, ApiProblem> {
    let decision = Box::pin(router.judge(asked, TriggerChannel::Api)).await?;
    if let EventDecision::Trigger(follows) = &decision
        && let TriggerReason::Skipped(reason) = &follows.reason
    {
        return Err(ApiProblem::Conflict(reason.words(&TextMarkup::PLAIN)));
    }
    Ok(decision)
}

fn is_startable(body: &JobBody, ticket: &TicketKey) -> Result<(), ApiProblem> {
    let (job, place) = (body.job, RequestPlace::of(ticket));
    if place == RequestPlace::Discussion && !job.is_for(place) {
        let problem = "a discussion has the jobs answer and discuss alone";
        return Err(ApiProblem::Unprocessable(problem.to_owned()));
    }
    let problem = match job.profile().access {
        JobAccess::Rehearsal => "a job is rehearsed with `mock`".to_owned(),
        JobAccess::Event => {
            let follows = "follows from checks, pushes, merges or time, which need no request";
            format!("the job {job} {follows}")
        }
        JobAccess::Users {
            places: [RequestPlace::Discussion],
            ..
        } if place != RequestPlace::Discussion => {
            format!("the job {job} is for a discussion: github:OWNER/NAME/discussions/NUMBER")
        }
        JobAccess::Users { places, .. } if !places.contains(&place) => {
            "a ticket of a folder has the job implement alone".to_owned()
        }
        JobAccess::Users { .. } if place == RequestPlace::Folder && body.context.is_some() => {
            "a ticket of a folder says everything in its text".to_owned()
        }
        JobAccess::Users { inputs, .. }
            if body.repository.is_some() && !inputs.contains(&JobInput::Repository) =>
        {
            "a repository is named for the job implement alone".to_owned()
        }
        JobAccess::Users { .. } => return Ok(()),
    };
    Err(ApiProblem::Unprocessable(problem))
}

/// Replaces the job by a rehearsal of it. Repair limits and retries do not count a rehearsal as the job.
fn turn_into_rehearsal(mut follows: NewTrigger) -> NewTrigger {
    if let TriggerReason::JobRequested(request) = &mut follows.reason {
        let about = std::mem::take(&mut request.about);
        let job = std::mem::replace(&mut request.job, Job::Rehearse);
        request.about = JobSubject::Rehearsal(Box::new(RehearsedJob { job, about }));
    }
    follows
}

fn describe_planned_job(follows: &NewTrigger) -> Result<JobPlanned, ApiProblem> {
    let TriggerReason::JobRequested(job) = &follows.reason else {
        return Err(ApiProblem::Internal("no job follows".to_owned()));
    };
    let pull_request = match job.about.change() {
        Some(change) => Some(&change.pull_request),
        None => job.about.pull_request().map(|(ours, _)| ours),
    };
    Ok(JobPlanned {
        ticket: follows.ticket.to_string(),
        job: job.job,
        repository: job.repository.to_string(),
        summary: job.text.summary.clone(),
        about: job.about.name().to_owned(),
        pull_request: pull_request.map(|pull_request| pull_request.url.clone()),
    })
}

/// Text for a ticket of a folder. Other tickets have their text in a tracker.
fn text_of_folder(ticket: &TicketKey, text: Option<TextBody>) -> Result<Option<TextBody>, ApiProblem> {
    let problem = match (ticket, &text) {
        (TicketKey::Folder { .. }, None) => "a ticket of a folder is started with its text",
        (TicketKey::Jira { .. } | TicketKey::GitHub { .. } | TicketKey::Discussion { .. }, Some(_)) => {
            "the ticket has a text already"
        }
        (TicketKey::Folder { .. }, Some(_)) | (_, None) => return Ok(text),
    };
    Err(ApiProblem::Unprocessable(problem.to_owned()))
}

/// Job of a folder's ticket; a skip rule is a conflict.
fn decide_folder_job(text: TextBody, rules: &RepositoryRules) -> Result<TriggerReason, ApiProblem> {
    let invalid = |problem: domain::RulesProblem| ApiProblem::Unprocessable(problem.to_string());
    let decided = job_request::decide_in_folder(text.summary, text.description, rules).map_err(invalid)?;
    if let TriggerReason::Skipped(reason) = decided {
        return Err(ApiProblem::Conflict(reason.words(&TextMarkup::PLAIN)));
    }
    Ok(decided)
}

fn request_key(headers: &HeaderMap) -> Result<TriggerKey, ApiProblem> {
    let key = idempotency_key(headers)?.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    Ok(TriggerKey::new(format!("api:{key}")))
}

/// Idempotency key of the caller. A repeated request with the same key counts once.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiProblem> {
    let Some(header) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let text = header
        .to_str()
        .ok()
        .filter(|text| !text.is_empty() && text.len() <= 200);
    let text =
        text.ok_or_else(|| ApiProblem::BadRequest("Idempotency-Key must be 1 to 200 characters".to_owned()))?;
    Ok(Some(text.to_owned()))
}

fn find_rules(
    router: &EventRouter,
    ticket: &TicketKey,
    repository: Option<&str>,
) -> Result<RepositoryRules, ApiProblem> {
    let Some(repository) = repository else {
        return Ok(router.rules_for(ticket)?);
    };
    let rules = router.rules.book().for_repository(&repository.parse()?).cloned();
    rules.ok_or_else(|| ApiProblem::Unprocessable(format!("no rules name the repository {repository}")))
}

/// Checks an explicitly named repository against the caller's scope. The repository of the ticket needs no check: the
/// ticket's key decides about its scope.
fn is_in_scope(
    caller: &TokenCaller,
    rules: &RepositoryRules,
    repository: Option<&str>,
) -> Result<(), ApiProblem> {
    match repository {
        Some(repository) if !caller.scope.has_rules(rules) => Err(ApiProblem::Unprocessable(format!(
            "no rules name the repository {repository}"
        ))),
        Some(_) | None => Ok(()),
    }
}

fn respond_job_accepted(ticket: TicketKey, key: &TriggerKey, sequence: u64) -> Response {
    let run = RunId::new(ticket.clone(), sequence).to_string();
    let body = JobAccepted {
        ticket: ticket.to_string(),
        key: key.as_str().to_owned(),
        sequence,
        run,
    };
    (StatusCode::ACCEPTED, Json(body)).into_response()
}

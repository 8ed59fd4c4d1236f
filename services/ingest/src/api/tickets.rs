//! Tickets.

use axum::{
    Json,
    extract::{Path, State, rejection::JsonRejection},
    http::StatusCode,
};
use domain::{Reason, Row, SkipPlace, SkipReason, Source, TicketKey, TriggerKey};
use queue::{Bucket, Found};

use super::{
    Admin, ApiState, Operator, Problem, Viewer,
    decisions::{Answer, accepted},
    runs::ticket_key,
    types::{Accepted, CommentBody, ProblemView, TicketView},
};
use crate::kinds::comment::Comment;

/// Shows one ticket with its runs.
#[utoipa::path(get, path = "/v1/tickets/{key}",
    params(("key" = String, Path, description = "Percent-encoded ticket key.")), security(("bearer" = [])),
    responses((status = 200, body = TicketView), (status = 404, body = ProblemView)))]
pub(super) async fn show(
    _: Viewer,
    State(state): State<ApiState>,
    Path(key): Path<String>,
) -> Result<Json<TicketView>, Problem> {
    let ticket = ticket_key(&key)?;
    let queue = &state.router()?.queue;
    let row = queue
        .table::<Row>(Bucket::Tickets)
        .get(&ticket.to_string())
        .await?
        .map(|(row, _)| row);
    let triggers = queue.triggers().read_each_after(&ticket, 0).await?;
    if row.is_none() && triggers.is_empty() {
        return Err(Problem::NotFound(format!("nothing is known of {ticket}")));
    }
    let row = row.unwrap_or_default();
    let last_skip = triggers
        .iter()
        .rev()
        .filter_map(|(_, trigger)| trigger.as_ref().ok())
        .find_map(|trigger| match &trigger.reason {
            Reason::Skipped(reason) => Some(skip_text(reason)),
            _ => None,
        });
    Ok(Json(TicketView {
        ticket: ticket.to_string(),
        runs: row.runs.iter().map(Into::into).collect(),
        pull_requests: row.pull_requests,
        due: row.due.map(|due| due.to_string()),
        quarantined: row.quarantined,
        last_skip,
    }))
}

/// Says something on a ticket of a folder: an answer to a question, or anything else for its live runs. Tickets of Jira and
/// GitHub have comments there.
#[utoipa::path(post, path = "/v1/tickets/{key}/comments", request_body = CommentBody,
    params(("key" = String, Path, description = "Percent-encoded ticket key.")), security(("bearer" = [])),
    responses((status = 202, body = Accepted), (status = 403, body = ProblemView),
        (status = 409, body = ProblemView, description = "No run is under way that could read it."),
        (status = 422, body = ProblemView, description = "The ticket has comments of its own.")))]
pub(super) async fn comment(
    Operator(caller): Operator,
    State(state): State<ApiState>,
    Path(key): Path<String>,
    body: Result<Json<CommentBody>, JsonRejection>,
) -> Answer {
    let Json(body) = body?;
    let (ticket, router) = (ticket_key(&key)?, state.router()?);
    if !matches!(ticket, TicketKey::Folder { .. }) {
        return Err(Problem::Unprocessable(format!(
            "comment on {ticket} itself; only a folder's tickets take comments here"
        )));
    }
    let key = TriggerKey::new(format!("comment:{}", uuid::Uuid::new_v4()));
    let said = Comment::from_api(ticket.clone(), key.clone(), caller.name, body.text);
    let outcome = Box::pin(router.take(&said, Source::Api)).await?;
    accepted(&ticket, &key, &outcome)
}

/// Forgets a ticket that nobody works on: its triggers, reports, journals, row, ledger, branches and dead letters. What stands on Jira
/// and GitHub stays; a ticket that is still in the status that asks for work is taken up again.
#[utoipa::path(delete, path = "/v1/tickets/{key}",
    params(("key" = String, Path, description = "Percent-encoded ticket key.")), security(("bearer" = [])),
    responses((status = 204), (status = 403, body = ProblemView),
        (status = 409, body = ProblemView, description = "It has live runs.")))]
pub(super) async fn purge(
    Admin(caller): Admin,
    State(state): State<ApiState>,
    Path(key): Path<String>,
) -> Result<StatusCode, Problem> {
    let ticket = ticket_key(&key)?;
    let queue = &state.router()?.queue;
    let row = queue
        .table::<Row>(Bucket::Tickets)
        .find(&ticket.to_string())
        .await?;
    // A row that cannot be read keeps nobody from forgetting it.
    if matches!(row, Some(Found::Value(row, _)) if !row.pending.is_empty()) {
        return Err(Problem::Conflict(format!(
            "{ticket} has live runs; stop them first"
        )));
    }
    queue.forget_ticket(&ticket).await?;
    tracing::warn!(%ticket, by = caller.name, "ticket purged");
    Ok(StatusCode::NO_CONTENT)
}

/// A skip rule in words for the API's users.
pub(super) fn skip_text(reason: &SkipReason) -> String {
    match reason {
        SkipReason::Phrase { phrase, place } => {
            let place = match place {
                SkipPlace::Summary => "the summary".to_owned(),
                SkipPlace::Description => "the description".to_owned(),
                SkipPlace::Comment { author } => format!("a comment by {author}"),
            };
            format!("the phrase {phrase} is in {place}")
        }
        SkipReason::Label { label } => format!("the ticket has the label {label}"),
        SkipReason::PullRequestExists { url, author } => format!("a pull request by {author} exists: {url}"),
        SkipReason::NotAllowed { actor, group } if group.is_empty() => {
            format!("{actor} may not ask for work: ingest.jira_trigger_group is not set, so nobody may")
        }
        SkipReason::NotAllowed { actor, group } => {
            format!("{actor} may not ask for work: not a member of the Jira group {group}")
        }
        SkipReason::NoWritePermission { actor } => {
            format!("{actor} may not ask for work: no write permission in the repository")
        }
        SkipReason::StatusLeft { wanted, status } => {
            format!("the ticket had left the status {wanted} when its move was told: it is {status}")
        }
        SkipReason::TextChanged { by } => {
            format!("{by}, who may not ask for work, changed the text after work was asked for")
        }
        SkipReason::UnclearDecision { heads } => {
            format!(
                "a decision in a comment did not name what it is about: {}",
                heads.join(", ")
            )
        }
        SkipReason::UnclearRepository { choices } => {
            let names: Vec<&str> = choices.iter().map(|choice| choice.repository.as_str()).collect();
            format!(
                "the ticket's components and labels do not say which repository is meant: {}",
                names.join(", ")
            )
        }
        SkipReason::NoIssues => "the rules let us open no issues (issues.most_planned)".to_owned(),
        SkipReason::Unreadable => "Jira's answer about the ticket could not be read".to_owned(),
    }
}

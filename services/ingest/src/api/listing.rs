//! Listings and texts of tickets, read from their trackers on request.

use std::{collections::BTreeSet, time::Duration};

use api::types::{
    CommentView, ListProblem, ProblemView, TicketLine, TicketTextView, TicketsQuery, TicketsView,
};
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use domain::{Reason, RepositoryName, Row, Rules, TicketKey, TicketText, Timestamp};
use futures::{StreamExt, stream};
use github::IssueState;
use queue::Bucket;

use super::{ApiState, Problem, Viewer, auth::InScope, scope::Scope};
use crate::{
    outside::{Comment, ReadError},
    pin,
    router::Router,
    skip,
    standing::asks_for_work,
};

// Time limit of one tracker.
const PATIENCE: Duration = Duration::from_secs(10);
// Trackers that are asked concurrently.
const AT_ONCE: usize = 8;
const LISTED: usize = 50;

/// Lists tickets of the projects and repositories that the rules name, in any status.
#[utoipa::path(get, path = "/v1/tickets", params(TicketsQuery), security(("bearer" = [])),
    responses((status = 200, body = TicketsView),
        (status = 422, body = ProblemView, description = "No rules name the repository, or there is no such status.")))]
pub(super) async fn list(
    Viewer(caller): Viewer,
    State(state): State<ApiState>,
    query: Result<Query<TicketsQuery>, QueryRejection>,
) -> Result<Json<TicketsView>, Problem> {
    let Query(query) = query?;
    let router = state.router()?;
    let repository = query.repository.as_deref().map(str::parse).transpose()?;
    let sources = sources(router, &caller.scope, repository.as_ref())?;
    // `buffered` keeps the order of the sources.
    let read = stream::iter(sources).map(|source| lines(router, source, query.status.as_deref()));
    let read: Vec<_> = read.buffered(AT_ONCE).collect().await;
    let mut view = TicketsView::default();
    let mut knows_status = false;
    for source in read {
        match source {
            Ok(tickets) => {
                knows_status |= tickets.is_some();
                view.tickets.extend(tickets.into_iter().flatten());
            }
            Err(problem) => view.problems.push(problem),
        }
    }
    // A tracker that failed may know the status.
    if let Some(status) = query.status.filter(|_| !knows_status && view.problems.is_empty()) {
        return Err(Problem::Unprocessable(format!(
            "nowhere is there a status {status:?}"
        )));
    }
    let rows = router.queue.table::<Row>(Bucket::Tickets);
    for line in &mut view.tickets {
        let row = rows.get(&line.ticket).await?;
        line.run = row.and_then(|(row, _)| row.runs.last().map(Into::into));
    }
    Ok(Json(view))
}

/// Tickets of one tracker, `None` when it does not know the status, or the reason why they are unknown.
async fn lines(router: &Router, source: Source, status: Option<&str>) -> Result<Read, ListProblem> {
    let read = tokio::time::timeout(PATIENCE, source.read(router, status)).await;
    let problem = match read {
        Ok(Ok(tickets)) => return Ok(tickets),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", PATIENCE.as_secs()),
    };
    let repository = source.name();
    Err(ListProblem { repository, problem })
}

/// Tickets of a tracker; absent when it does not know the status.
type Read = Option<Vec<TicketLine>>;

/// Source of tickets.
enum Source {
    Jira(Box<Rules>),
    GitHub(Box<Rules>, RepositoryName),
}

/// Projects, and repositories with issues, that the rules name, each once.
fn sources(router: &Router, scope: &Scope, wanted: Option<&RepositoryName>) -> Result<Vec<Source>, Problem> {
    let book = router.rules.book();
    let mut seen = BTreeSet::new();
    let mut sources = Vec::new();
    let mut is_known = false;
    for rules in book.repositories().filter(|rules| scope.has_rules(rules)) {
        let Ok(repository) = rules.repository() else {
            continue;
        };
        if wanted.is_some_and(|wanted| *wanted != repository) {
            continue;
        }
        is_known = true;
        let project = (rules.jira.instance.clone(), rules.jira.project_key.clone());
        let is_in = scope.has_project(project.0.as_ref(), &project.1);
        if !project.1.is_empty() && is_in && seen.insert(project) {
            sources.push(Source::Jira(Box::new(rules.clone())));
        }
        if !rules.issues.is_empty() && scope.has_repository(&repository) {
            sources.push(Source::GitHub(Box::new(rules.clone()), repository));
        }
    }
    match wanted {
        Some(wanted) if !is_known => Err(Problem::Unprocessable(format!(
            "no rules name the repository {wanted}"
        ))),
        Some(_) | None => Ok(sources),
    }
}

impl Source {
    fn name(&self) -> String {
        match self {
            Self::Jira(rules) => format!("the Jira project {}", rules.jira.project_key),
            Self::GitHub(_, repository) => repository.to_string(),
        }
    }

    async fn read(&self, router: &Router, status: Option<&str>) -> Result<Read, ReadError> {
        match self {
            Self::Jira(rules) => of_jira(router, rules, status).await,
            Self::GitHub(rules, repository) => {
                let state = match status.map(str::to_ascii_lowercase).as_deref() {
                    None | Some("open") => IssueState::Open,
                    Some("closed") => IssueState::Closed,
                    Some(_) => return Ok(None),
                };
                of_github(router, rules, repository, state).await.map(Some)
            }
        }
    }
}

async fn of_jira(router: &Router, rules: &Rules, status: Option<&str>) -> Result<Read, ReadError> {
    if let Some(status) = status {
        let known = router.outside.statuses(&rules.jira).await?;
        let status = status.to_lowercase();
        if !known.iter().any(|known| known.to_lowercase() == status) {
            return Ok(None);
        }
    }
    let found = router.outside.list(&rules.jira, status).await?;
    let repository = rules
        .repository()
        .map_or_else(|_| String::new(), |name| name.to_string());
    let line = |found: jira::Outlined| TicketLine {
        ticket: found.key.to_string(),
        repository: repository.clone(),
        asks: asks_for_work(&found.status, rules),
        status: line(&found.status),
        summary: line(&found.summary),
        run: None,
    };
    Ok(Some(found.into_iter().take(LISTED).map(line).collect()))
}

async fn of_github(
    router: &Router,
    rules: &Rules,
    repository: &RepositoryName,
    state: IssueState,
) -> Result<Vec<TicketLine>, ReadError> {
    let found = router.outside.list_issues(repository, state).await?;
    let line = |found: github::ListedIssue| {
        let ticket = TicketKey::GitHub {
            repository: repository.clone(),
            number: found.stub.number,
        };
        let assigned = &found.stub.assigned;
        let is_ours = assigned
            .assignees
            .iter()
            .any(|login| rules.issues.is_assignee(login));
        let is_labeled = assigned.labels.iter().any(|label| rules.issues.is_label(label));
        TicketLine {
            ticket: ticket.to_string(),
            repository: repository.to_string(),
            asks: state == IssueState::Open && (is_ours || is_labeled),
            status: match state {
                IssueState::Open => "open",
                IssueState::Closed => "closed",
            }
            .to_owned(),
            summary: line(&found.title),
            run: None,
        }
    };
    Ok(found.into_iter().take(LISTED).map(line).collect())
}

fn line(text: &str) -> String {
    pin::cut(&pin::sanitise(text).replace('\n', " "), 500)
}

/// Shows the current text of a ticket in the rules' projects and repositories. A ticket of a folder shows
/// the text of its last start.
#[utoipa::path(get, path = "/v1/tickets/{key}/text",
    params(("key" = String, Path, description = "Percent-encoded ticket key.")), security(("bearer" = [])),
    responses((status = 200, body = TicketTextView), (status = 404, body = ProblemView),
        (status = 422, body = ProblemView, description = "No rules for the ticket.")))]
pub(super) async fn text(
    InScope(_viewer, ticket): InScope<Viewer, TicketKey>,
    State(state): State<ApiState>,
) -> Result<Json<TicketTextView>, Problem> {
    let router = state.router()?;
    // Tickets outside the rules are not served, although the reader account may see them.
    router.rules_for(&ticket)?;
    let view = match &ticket {
        TicketKey::Folder { .. } => given(router, &ticket).await?,
        // GitHub numbers issues and pull requests together, and the issue reader does not return pull
        // requests.
        TicketKey::GitHub { repository, number } => match issue(router, &ticket).await {
            Err(ReadError::NotFound(_)) => pull_request(router, &ticket, repository, *number).await,
            read => read,
        }
        .map_err(crate::outcome::Failure::from)?,
        TicketKey::Jira { .. } | TicketKey::Discussion { .. } => issue(router, &ticket)
            .await
            .map_err(crate::outcome::Failure::from)?,
    };
    Ok(Json(view))
}

async fn issue(router: &Router, ticket: &TicketKey) -> Result<TicketTextView, ReadError> {
    let issue = router.outside.issue(ticket).await?;
    let now = Timestamp::from_unix_ms(i64::MAX);
    let text = pin::pin(skip::text_of(&issue), &[], now, &BTreeSet::new());
    let comment = |comment: &Comment| CommentView {
        author: line(&comment.author),
        at: comment.created.to_string(),
        text: pin::words(&comment.text),
    };
    Ok(TicketTextView {
        status: line(&issue.status),
        assignees: issue
            .assignees
            .iter()
            .map(|account| line(&account.display_name))
            .collect(),
        comments: issue.comments.iter().map(comment).collect(),
        ..view(ticket, text)
    })
}

async fn pull_request(
    router: &Router,
    ticket: &TicketKey,
    repository: &RepositoryName,
    number: u64,
) -> Result<TicketTextView, ReadError> {
    let now = router.outside.pull_request(repository, number).await?;
    let status = match (now.merged, now.closed_at.is_some(), now.draft) {
        (true, _, _) => "merged",
        (false, true, _) => "closed",
        (false, false, true) => "draft",
        (false, false, false) => "open",
    };
    let text = TicketText {
        summary: now.title,
        description: now.body,
        url: now.url,
        ..TicketText::default()
    };
    let text = pin::pin(text, &[], Timestamp::default(), &BTreeSet::new());
    Ok(TicketTextView {
        status: status.to_owned(),
        kind: "pull request".to_owned(),
        ..view(ticket, text)
    })
}

/// Text with which a folder's ticket was last started.
async fn given(router: &Router, ticket: &TicketKey) -> Result<TicketTextView, Problem> {
    let triggers = router.queue.triggers().read_each_after(ticket, 0).await?;
    let texts = triggers
        .into_iter()
        .rev()
        .filter_map(|(_, trigger)| match trigger.ok()?.reason {
            Reason::JobRequested(job) => Some(job.text),
            _ => None,
        });
    let text = texts.into_iter().next();
    let text = text.ok_or_else(|| Problem::NotFound(format!("nothing is known of {ticket}")))?;
    Ok(view(ticket, text))
}

fn view(ticket: &TicketKey, text: TicketText) -> TicketTextView {
    TicketTextView {
        ticket: ticket.to_string(),
        url: text.url,
        status: String::new(),
        kind: text.kind,
        priority: text.priority,
        labels: text.labels,
        assignees: Vec::new(),
        summary: text.summary,
        description: text.description,
        comments: Vec::new(),
    }
}

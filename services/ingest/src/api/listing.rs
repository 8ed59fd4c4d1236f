//! Listings and texts of tickets, read from their trackers on request.

use std::{collections::BTreeSet, time::Duration};

use api::types::{
    CommentView, ListProblem, ProblemView, TicketLine, TicketTextView, TicketsQuery, TicketsView,
};
use axum::{Json, extract::State};
use domain::{RepositoryName, RepositoryRules, TicketKey, TicketRow, TicketText, Timestamp, TriggerReason};
use futures::{StreamExt, stream};
use github::IssueListState;
use queue::KeyValueBucket;

use super::{ApiProblem, ApiQuery, ApiState, ViewerProof, auth::InScope, scope::TokenScope};
use crate::{
    facts::tracker_reader::{ReadError, TrackerComment},
    policy::{skip, status_check::asks_for_work},
    router::EventRouter,
    text::text_pin,
};

// Time limit of one tracker.
const PATIENCE: Duration = Duration::from_secs(10);
// Trackers that are asked concurrently.
const AT_ONCE: usize = 8;
const LISTED: usize = 50;
const LISTED_CHANGED: usize = 100;
const MOST_DAYS: u32 = 31;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Lists tickets of the projects and repositories that the rules name, in any status.
#[utoipa::path(get, path = "/v1/tickets", params(TicketsQuery), security(("bearer" = [])),
    responses((status = 200, body = TicketsView),
        (status = 422, body = ProblemView, description = "No rules name the repository, or there is no such status.")))]
pub(super) async fn list_tickets(
    ViewerProof(caller): ViewerProof,
    State(state): State<ApiState>,
    ApiQuery(query): ApiQuery<TicketsQuery>,
) -> Result<Json<TicketsView>, ApiProblem> {
    let filter = TicketFilter::of(&query)?;
    let router = state.router()?;
    let repository = query.repository.as_deref().map(str::parse).transpose()?;
    let sources = list_sources(router, &caller.scope, repository.as_ref())?;
    // `buffered` keeps the order of the sources.
    let read = stream::iter(sources).map(|source| read_source_tickets(router, source, filter));
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
        return Err(ApiProblem::Unprocessable(format!(
            "nowhere is there a status {status:?}"
        )));
    }
    let rows = router.queue.table::<TicketRow>(KeyValueBucket::Tickets);
    for line in &mut view.tickets {
        // A moved issue keeps its records under the key that they began with.
        let records = router.facts.keys().records_of(&line.ticket.parse()?).await?;
        let row = rows.get(&records).await?;
        line.run = row.and_then(|(row, _)| row.runs.last().map(Into::into));
    }
    Ok(Json(view))
}

/// Tickets to list.
#[derive(Clone, Copy)]
enum TicketFilter<'a> {
    Unfinished,
    Status(&'a str),
    /// Tickets in any status that changed within so many days.
    ChangedWithin(u32),
}

impl<'a> TicketFilter<'a> {
    fn of(query: &'a TicketsQuery) -> Result<Self, ApiProblem> {
        match (query.status.as_deref(), query.days) {
            (None, None) => Ok(Self::Unfinished),
            (Some(status), None) => Ok(Self::Status(status)),
            (None, Some(days)) if (1..=MOST_DAYS).contains(&days) => Ok(Self::ChangedWithin(days)),
            (None, Some(_)) => Err(ApiProblem::Unprocessable(format!(
                "days must be 1 to {MOST_DAYS}"
            ))),
            (Some(_), Some(_)) => Err(ApiProblem::Unprocessable(
                "give status or days, and not both".to_owned(),
            )),
        }
    }

    const fn limit(self) -> usize {
        match self {
            Self::Unfinished | Self::Status(_) => LISTED,
            Self::ChangedWithin(_) => LISTED_CHANGED,
        }
    }
}

/// Tickets of one tracker, `None` when it does not know the status, or the reason why they are unknown.
async fn read_source_tickets(
    router: &EventRouter,
    source: TicketListSource,
    filter: TicketFilter<'_>,
) -> Result<TrackerTickets, ListProblem> {
    let read = tokio::time::timeout(PATIENCE, source.read(router, filter)).await;
    let problem = match read {
        Ok(Ok(tickets)) => return Ok(tickets),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", PATIENCE.as_secs()),
    };
    let repository = source.name();
    Err(ListProblem { repository, problem })
}

/// Tickets of a tracker; absent when it does not know the status.
type TrackerTickets = Option<Vec<TicketLine>>;

/// Source of tickets.
enum TicketListSource {
    Jira(Box<RepositoryRules>),
    GitHub(Box<RepositoryRules>, RepositoryName),
}

/// Projects, and repositories with issues, that the rules name, each once.
fn list_sources(
    router: &EventRouter,
    scope: &TokenScope,
    wanted: Option<&RepositoryName>,
) -> Result<Vec<TicketListSource>, ApiProblem> {
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
            sources.push(TicketListSource::Jira(Box::new(rules.clone())));
        }
        if !rules.issues.is_empty() && scope.has_repository(&repository) {
            sources.push(TicketListSource::GitHub(Box::new(rules.clone()), repository));
        }
    }
    match wanted {
        Some(wanted) if !is_known => Err(ApiProblem::Unprocessable(format!(
            "no rules name the repository {wanted}"
        ))),
        Some(_) | None => Ok(sources),
    }
}

impl TicketListSource {
    fn name(&self) -> String {
        match self {
            Self::Jira(rules) => format!("the Jira project {}", rules.jira.project_key),
            Self::GitHub(_, repository) => repository.to_string(),
        }
    }

    async fn read(
        &self,
        router: &EventRouter,
        filter: TicketFilter<'_>,
    ) -> Result<TrackerTickets, ReadError> {
        match self {
            Self::Jira(rules) => read_jira_tickets(router, rules, filter).await,
            Self::GitHub(rules, repository) => {
                let state = match filter {
                    TicketFilter::Unfinished => IssueListState::Open,
                    TicketFilter::Status(status) if status.eq_ignore_ascii_case("open") => {
                        IssueListState::Open
                    }
                    TicketFilter::Status(status) if status.eq_ignore_ascii_case("closed") => {
                        IssueListState::Closed
                    }
                    TicketFilter::Status(_) => return Ok(None),
                    TicketFilter::ChangedWithin(days) => {
                        let ago_ms = i64::from(days) * DAY_MS;
                        IssueListState::ChangedSince(bootstrap::read_wall_clock().plus_ms(-ago_ms))
                    }
                };
                read_github_tickets(router, rules, repository, state, filter.limit())
                    .await
                    .map(Some)
            }
        }
    }
}

async fn read_jira_tickets(
    router: &EventRouter,
    rules: &RepositoryRules,
    filter: TicketFilter<'_>,
) -> Result<TrackerTickets, ReadError> {
    let found = match filter {
        TicketFilter::Unfinished => router.outside.list(&rules.jira, None).await?,
        TicketFilter::Status(status) => {
            let known = router.outside.statuses(&rules.jira).await?;
            let wanted = status.to_lowercase();
            if !known.iter().any(|known| known.to_lowercase() == wanted) {
                return Ok(None);
            }
            router.outside.list(&rules.jira, Some(status)).await?
        }
        TicketFilter::ChangedWithin(days) => router.outside.list_changed(&rules.jira, days).await?,
    };
    let repository = rules
        .repository()
        .map_or_else(|_| String::new(), |name| name.to_string());
    let line = |found: jira::IssueOutline| TicketLine {
        ticket: found.key.to_string(),
        repository: repository.clone(),
        asks: asks_for_work(&found.status, rules),
        status: clean_view_line(&found.status),
        summary: clean_view_line(&found.summary),
        run: None,
    };
    Ok(Some(found.into_iter().take(filter.limit()).map(line).collect()))
}

async fn read_github_tickets(
    router: &EventRouter,
    rules: &RepositoryRules,
    repository: &RepositoryName,
    state: IssueListState,
    limit: usize,
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
            asks: found.is_open && (is_ours || is_labeled),
            status: if found.is_open { "open" } else { "closed" }.to_owned(),
            summary: clean_view_line(&found.title),
            run: None,
        }
    };
    Ok(found.into_iter().take(limit).map(line).collect())
}

fn clean_view_line(text: &str) -> String {
    text_pin::clean_line(text, 500)
}

/// Shows the current text of a ticket in the rules' projects and repositories. A ticket of a folder shows
/// the text of its last start.
#[utoipa::path(get, path = "/v1/tickets/{key}/text",
    params(("key" = String, Path, description = "Percent-encoded ticket key.")), security(("bearer" = [])),
    responses((status = 200, body = TicketTextView), (status = 404, body = ProblemView),
        (status = 422, body = ProblemView, description = "No rules for the ticket.")))]
pub(super) async fn show_ticket_text(
    InScope(_viewer, ticket): InScope<ViewerProof, TicketKey>,
    State(state): State<ApiState>,
) -> Result<Json<TicketTextView>, ApiProblem> {
    let router = state.router()?;
    // Tickets outside the rules are not served, although the reader account may see them.
    let present = router.facts.keys().present_key(&ticket).await?;
    router.rules_for(&present)?;
    let view = match &ticket {
        TicketKey::Folder { .. } => read_folder_view(router, &ticket).await?,
        // GitHub numbers issues and pull requests together, and the issue reader does not return pull
        // requests.
        TicketKey::GitHub { repository, number } => match read_issue_view(router, &ticket).await {
            Err(ReadError::NotFound(_)) => read_pull_request_view(router, &ticket, repository, *number).await,
            read => read,
        }
        .map_err(crate::router::outcome::EventFailure::from)?,
        TicketKey::Jira { .. } | TicketKey::Discussion { .. } => read_issue_view(router, &ticket)
            .await
            .map_err(crate::router::outcome::EventFailure::from)?,
    };
    Ok(Json(view))
}

async fn read_issue_view(router: &EventRouter, ticket: &TicketKey) -> Result<TicketTextView, ReadError> {
    let issue = router.outside.issue(ticket).await?;
    let now = Timestamp::from_unix_ms(i64::MAX);
    let text = text_pin::pin_text(skip::build_ticket_text(&issue), &[], now, &BTreeSet::new());
    let comment = |comment: &TrackerComment| CommentView {
        author: clean_view_line(&comment.author),
        at: comment.created.to_string(),
        text: text_pin::pin_words(&comment.text),
    };
    Ok(TicketTextView {
        status: clean_view_line(&issue.status),
        assignees: issue
            .assignees
            .iter()
            .map(|account| clean_view_line(&account.display_name))
            .collect(),
        comments: issue.comments.iter().map(comment).collect(),
        ..build_text_view(ticket, text)
    })
}

async fn read_pull_request_view(
    router: &EventRouter,
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
    let text = text_pin::pin_text(text, &[], Timestamp::default(), &BTreeSet::new());
    Ok(TicketTextView {
        status: status.to_owned(),
        kind: "pull request".to_owned(),
        ..build_text_view(ticket, text)
    })
}

/// Text with which a folder's ticket was last started.
async fn read_folder_view(router: &EventRouter, ticket: &TicketKey) -> Result<TicketTextView, ApiProblem> {
    let triggers = router.queue.triggers().read_each_after(ticket, 0).await?;
    let mut triggers = triggers.into_iter().rev();
    let text = triggers.find_map(|(_, trigger)| {
        let TriggerReason::JobRequested(job) = trigger.ok()?.reason else {
            return None;
        };
        Some(job.text)
    });
    let text = text.ok_or_else(|| ApiProblem::NotFound(format!("nothing is known of {ticket}")))?;
    Ok(build_text_view(ticket, text))
}

fn build_text_view(ticket: &TicketKey, text: TicketText) -> TicketTextView {
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

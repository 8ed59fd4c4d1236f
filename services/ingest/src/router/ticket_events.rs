//! Events that follow from the present state of one Jira ticket. A request that names the ticket leads to them: each has
//! the key that it has by webhook and by poll, so it counts once.

use bootstrap::rules::RulesBook;
use domain::{TicketKey, Timestamp};

use crate::{
    events::{
        WebhookEvents, assignment::TicketAssignedEvent, comment::CommentEvent, matched::ConditionMatchEvent,
        returned::TicketReturnEvent, text::TextEditEvent, work::WorkRequestEvent,
    },
    facts::tracker_reader::{TrackerIssue, TrackerReader},
    policy::status_check::asks_for_work,
    router::outcome::EventFailure,
};

// Age of the comments and edits that count, equal to that of a first poll.
const WINDOW_MS: i64 = 60 * 60 * 1000;

/// Reads a ticket and lists its events; none for a project without rules, which is not read.
pub(crate) async fn list_ticket_events(
    outside: &TrackerReader,
    book: &RulesBook,
    ticket: &TicketKey,
    now: Timestamp,
) -> Result<WebhookEvents, EventFailure> {
    if book.for_ticket(ticket).is_none() {
        return Ok(WebhookEvents::new());
    }
    let issue = outside.issue(ticket).await?;
    let since = now.plus_ms(-WINDOW_MS);
    let mut events = list_state_events(book, ticket, &issue, since, now);
    for comment in outside.comments_since(ticket, since).await? {
        // The marker identifies our comments even when the settings do not name the writer account.
        if !comment.by_us && comment.marker.is_empty() {
            events.push(Box::new(CommentEvent::from_jira_poll(ticket, &comment)));
        }
    }
    Ok(events)
}

fn list_state_events(
    book: &RulesBook,
    ticket: &TicketKey,
    issue: &TrackerIssue,
    since: Timestamp,
    now: Timestamp,
) -> WebhookEvents {
    let covering = || {
        let all = book.repositories();
        all.filter(move |rules| rules.cover(ticket))
    };
    let mut events = WebhookEvents::new();
    if covering().any(|rules| asks_for_work(&issue.status, rules)) {
        let is_there = |change: &&jira::StatusChange| change.to.eq_ignore_ascii_case(&issue.status);
        let moved = issue.moves.iter().rev().find(is_there).cloned();
        let work = WorkRequestEvent::from_poll(ticket.clone(), issue.status.clone(), moved, now);
        events.push(Box::new(work));
    }
    if covering().any(|rules| !rules.jira.assignee.is_empty()) {
        events.push(Box::new(TicketAssignedEvent::from_poll(ticket.clone())));
    }
    if covering().any(|rules| rules.jira.reopens(&issue.status)) {
        let returned = TicketReturnEvent::from_poll(ticket.clone(), issue.status.clone());
        events.push(Box::new(returned));
    }
    if covering().any(|rules| !rules.jira.jql.is_empty()) {
        events.push(Box::new(ConditionMatchEvent::to_check(ticket.clone())));
    }
    if covering().any(|rules| !rules.triage.is_off()) {
        let changed = jira::ChangedIssue {
            id: None,
            key: ticket.clone(),
            updated: now,
            created: issue.created.unwrap_or_default(),
            creator: issue.creator.clone(),
            status: issue.status.clone(),
            assignee: issue.assignees.first().cloned(),
        };
        let last_edit = issue.edits.last().filter(|edit| edit.at >= since).cloned();
        if let Some(written) = TextEditEvent::from_poll(&changed, last_edit, since) {
            events.push(Box::new(written));
        }
    }
    events
}

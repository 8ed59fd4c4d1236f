//! Polling fallback for events that only webhooks report: commands in comments, and new or edited tickets to triage.

use domain::{RepositoryName, RepositoryRules, ServiceOrigin, TicketKey, Timestamp, TriggerChannel};

use crate::{
    events::{
        assignment::TicketAssignedEvent, comment::CommentEvent, returned::TicketReturnEvent,
        text::TextEditEvent,
    },
    poll::{
        context::{PollContext, PollWindow},
        memory::PollMemory,
        round::{FailedFinding, PollRound, count_new_triggers},
    },
    router::outcome::{EventFailure, EventOutcome},
    webhook::payload::jira::SeenIssue,
};

/// Reads the changes of a Jira project since the last poll, and returns the number of events whose webhook was
/// missed.
///
/// An unreadable ticket blocks neither the other tickets nor, after some rounds, the poll mark.
pub(crate) async fn poll_jira_changes(
    context: &mut PollContext,
    sharing: &[&RepositoryRules],
) -> Result<u64, EventFailure> {
    let Some(project) = sharing.first().map(|rules| &rules.jira) else {
        return Ok(0);
    };
    let origin = ServiceOrigin::Jira(project.instance.clone());
    let key = format!("reconciled:{origin}:{}", project.project_key);
    let window = context.open_window(key).await?;
    let changed = context
        .router
        .outside
        .changed(project, window.since, window.now)
        .await?;
    let mut round = PollRound::default();
    for issue in order_by_failures(&changed.issues, &context.memory) {
        let remembered = describe_change(issue);
        if context.memory.has_settled(&remembered) {
            continue;
        }
        if round.is_outage() {
            round.postpone(issue.updated);
            continue;
        }
        match poll_noted_ticket(context, issue, &window, sharing).await {
            Ok(outcomes) => {
                round.add_read(count_new_triggers(&outcomes));
                context.memory.settle(remembered);
            }
            Err(failure) => {
                let failed = FailedFinding {
                    finding: remembered,
                    ticket: Some(issue.key.clone()),
                    at: issue.updated,
                    failure,
                };
                context.add_failure(&mut round, failed).await?;
            }
        }
    }
    let last = changed.issues.last().filter(|_| !changed.is_complete);
    let to = window.choose_mark(last.map(|issue| issue.updated));
    context.finish_round(round, &window, to).await
}

/// Reads a changed ticket; its key is noted before and after.
async fn poll_noted_ticket(
    context: &mut PollContext,
    issue: &jira::ChangedIssue,
    window: &PollWindow,
    sharing: &[&RepositoryRules],
) -> Result<Vec<EventOutcome>, EventFailure> {
    let seen = issue.id.map(|id| SeenIssue {
        id,
        key: issue.key.clone(),
        moved_from: None,
        at: window.now,
    });
    if let Some(seen) = &seen {
        context.router.note_issue(seen).await?;
    }
    let outcomes = poll_changed_ticket(context, issue, window.unread_from, sharing).await?;
    if let Some(seen) = &seen {
        context.router.note_records(seen, &outcomes).await?;
    }
    Ok(outcomes)
}

async fn poll_changed_ticket(
    context: &mut PollContext,
    issue: &jira::ChangedIssue,
    since: Timestamp,
    sharing: &[&RepositoryRules],
) -> Result<Vec<EventOutcome>, EventFailure> {
    let mut outcomes = Vec::new();
    for comment in context.router.outside.comments_since(&issue.key, since).await? {
        if let Some(outcome) = handle_jira_comment(context, &issue.key, &comment).await? {
            outcomes.push(outcome);
        }
    }
    let is_assignee = |account| sharing.iter().any(|rules| rules.jira.is_assignee(account));
    if issue.assignee.as_ref().is_some_and(is_assignee) {
        let given = TicketAssignedEvent::from_poll(issue.key.clone());
        outcomes.push(context.router.take(&given, TriggerChannel::Poll).await?);
    }
    if sharing.iter().any(|rules| rules.jira.reopens(&issue.status)) {
        let returned = TicketReturnEvent::from_poll(issue.key.clone(), issue.status.clone());
        outcomes.push(context.router.take(&returned, TriggerChannel::Poll).await?);
    }
    // The edits cost a request, so they are read only for rules with triage.
    if sharing.iter().any(|rules| !rules.triage.is_off()) {
        // Only the last edit matters, because a triage is about the current text.
        let last_edit = context
            .router
            .outside
            .text_edits_since(&issue.key, since)
            .await?
            .pop();
        if let Some(written) = TextEditEvent::from_poll(issue, last_edit, since) {
            outcomes.push(context.router.take(&written, TriggerChannel::Poll).await?);
        }
    }
    Ok(outcomes)
}

/// Handles a comment that no earlier round handled. Returns `None` for own and known comments.
async fn handle_jira_comment(
    context: &mut PollContext,
    ticket: &TicketKey,
    comment: &jira::JiraComment,
) -> Result<Option<EventOutcome>, EventFailure> {
    // The marker identifies our comments even when the settings do not name the writer account.
    let is_ours = comment.by_us || !comment.marker.is_empty();
    let said = CommentEvent::from_jira_poll(ticket, comment);
    let remembered = format!("{ticket} {}", said.key().as_str());
    if is_ours || context.memory.has_settled(&remembered) {
        return Ok(None);
    }
    let outcome = context.router.take(&said, TriggerChannel::Poll).await?;
    context.memory.settle(remembered);
    Ok(Some(outcome))
}

/// Reads the comments on pull requests and issues of a repository since the last poll, for commands whose webhook
/// was missed. Returns their number.
pub(crate) async fn poll_repository_comments(
    context: &mut PollContext,
    repository: &RepositoryName,
) -> Result<u64, EventFailure> {
    let window = context
        .open_window(format!("reconciled:github:{repository}"))
        .await?;
    let listed = context
        .router
        .outside
        .repository_comments(repository, window.since)
        .await?;
    let mut round = PollRound::default();
    for (number, comment) in listed.comments {
        let said = CommentEvent::from_github_poll(repository, number, comment, window.now);
        let remembered = format!("{repository} {}", said.key().as_str());
        if !context.router.is_for_us(&said) || context.memory.has_settled(&remembered) {
            continue;
        }
        match context.router.take(&said, TriggerChannel::Poll).await {
            Ok(outcome) => {
                round.add_read(count_new_triggers(&[outcome]));
                context.memory.settle(remembered);
            }
            Err(failure) => {
                let failed = FailedFinding {
                    finding: remembered,
                    ticket: None,
                    at: said.at(),
                    failure,
                };
                context.add_failure(&mut round, failed).await?;
            }
        }
    }
    let to = window.choose_mark(listed.listed_to);
    context.finish_round(round, &window, to).await
}

fn describe_change(issue: &jira::ChangedIssue) -> String {
    format!("{} updated {}", issue.key, issue.updated)
}

/// Changed tickets, those that failed in the fewest rounds first.
fn order_by_failures<'a>(
    issues: &'a [jira::ChangedIssue],
    memory: &PollMemory,
) -> Vec<&'a jira::ChangedIssue> {
    // An outage postpones all tickets after the first few failures. In the order of the listing, the same few would
    // fail in each round, and no other ticket would ever be read.
    let mut ordered: Vec<&jira::ChangedIssue> = issues.iter().collect();
    ordered.sort_by_cached_key(|issue| memory.failed_rounds(&describe_change(issue)));
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::memory::FailureCause;

    fn build_changed_issue(second: i64) -> jira::ChangedIssue {
        jira::ChangedIssue {
            id: None,
            key: format!("jira:ENG-{second}").parse().unwrap(),
            updated: Timestamp::from_unix_ms(second * 1_000),
            created: Timestamp::default(),
            creator: None,
            status: "To Do".to_owned(),
            assignee: None,
        }
    }

    #[test]
    fn tickets_that_failed_are_read_last() {
        let issues: Vec<jira::ChangedIssue> = (1..=4).map(build_changed_issue).collect();
        let mut memory = PollMemory::default();
        for failed in [0, 0, 1] {
            memory.count_failure(&describe_change(&issues[failed]), FailureCause::Outage);
        }
        let seconds = |memory: &PollMemory| -> Vec<i64> {
            let ordered = order_by_failures(&issues, memory).into_iter();
            ordered.map(|issue| issue.updated.unix_ms() / 1_000).collect()
        };
        assert_eq!(seconds(&memory), [3, 4, 2, 1]);
        memory.settle(describe_change(&issues[0]));
        assert_eq!(seconds(&memory), [1, 3, 4, 2]);
    }
}

//! Polling fallback for events that only webhooks report: commands in comments, and new or edited tickets to triage.

use bytes::Bytes;
use domain::{
    RepositoryName, RepositoryRules, ServiceOrigin, TicketKey, Timestamp, TriggerChannel,
    cause::format_error_chain,
};
use queue::{AppendOutcome, DeadLetter};

use crate::{
    delivery_replay::OVERLAP_MS,
    kinds::{
        comment::CommentEvent, given::TicketAssignedEvent, returned::TicketReturnEvent, text::TextEditEvent,
    },
    memory::PollMemory,
    outcome::{EventFailure, EventOutcome},
    poll_round::{FailedFinding, PollRound},
    router::EventRouter,
    tracker_reader::ReadError,
};

impl EventRouter {
    /// Reads the changes of a Jira project since the last poll, and returns the number of events whose webhook was
    /// missed.
    ///
    /// An unreadable ticket blocks neither the other tickets nor, after some rounds, the poll mark.
    pub(crate) async fn catch_up_jira(
        &self,
        sharing: &[&RepositoryRules],
        memory: &mut PollMemory,
    ) -> Result<u64, EventFailure> {
        let Some(project) = sharing.first().map(|rules| &rules.jira) else {
            return Ok(0);
        };
        let origin = ServiceOrigin::Jira(project.instance.clone());
        let key = format!("reconciled:{origin}:{}", project.project_key);
        let look = self.look(key).await?;
        let changed = self.outside.changed(project, look.since, look.now).await?;
        let mut round = PollRound::default();
        for issue in order_by_failures(&changed.issues, memory) {
            let remembered = describe_change(issue);
            if memory.knows(&remembered) {
                continue;
            }
            if round.is_outage() {
                round.postpone(issue.updated);
                continue;
            }
            match self.catch_up_ticket(issue, look.since, sharing, memory).await {
                Ok(outcomes) => {
                    round.add_read(count_new_triggers(&outcomes));
                    memory.settle(remembered);
                }
                // A rate limit applies to all tickets, so the rest of the round would fail too.
                Err(limit) if limit.is_limit() => {
                    self.settle_round(round, memory).await?;
                    return Err(limit);
                }
                Err(failure) => round.add_failure(FailedFinding {
                    finding: remembered,
                    ticket: Some(issue.key.clone()),
                    at: issue.updated,
                    failure,
                }),
            }
        }
        let recovered = round.recovered();
        // The poll mark must not pass a ticket that is retried, otherwise the next listing would not contain it.
        let waits_from = self.settle_round(round, memory).await?;
        // An incomplete listing is sorted by change time. The next poll starts at its last ticket.
        let last = changed
            .issues
            .last()
            .map(|issue| issue.updated.plus_ms(OVERLAP_MS));
        let to = last
            .filter(|last| !changed.is_complete && *last < look.now)
            .unwrap_or(look.now);
        self.looked(&look, waits_from.map_or(to, |waits| waits.min(to)))
            .await?;
        Ok(recovered)
    }

    /// Dead-letters findings that failed too often or for good. Returns the time of the oldest finding that the next
    /// round has to list again.
    pub(crate) async fn settle_round(
        &self,
        round: PollRound,
        memory: &mut PollMemory,
    ) -> Result<Option<Timestamp>, EventFailure> {
        let failures = round.settle(memory);
        for FailedFinding { finding, failure, .. } in failures.retried {
            tracing::warn!(
                finding,
                error = %format_error_chain(&failure),
                "not read; it is tried again in the next round"
            );
        }
        for failed in failures.given_up {
            let FailedFinding {
                finding,
                ticket,
                failure,
                ..
            } = failed;
            let is_passing = failure.may_pass();
            if self.is_gone(ticket.as_ref(), &failure).await {
                tracing::info!(finding, "deleted before it was read; there is nothing to do");
            } else {
                self.give_up(&finding, ticket, &failure).await?;
            }
            // A finding that failed for a passing reason is read again when it is listed again.
            if is_passing {
                memory.settle(finding);
            } else {
                memory.abandon(finding);
            }
        }
        Ok(failures.waits_from)
    }

    /// True when the Jira ticket itself is deleted. A missing part of an existing ticket is an error that needs a dead
    /// letter.
    async fn is_gone(&self, ticket: Option<&TicketKey>, failure: &EventFailure) -> bool {
        let (Some(ticket @ TicketKey::Jira { .. }), EventFailure::Unknown(_)) = (ticket, failure) else {
            return false;
        };
        matches!(self.outside.issue(ticket).await, Err(ReadError::NotFound(_)))
    }

    /// Gives up a finding: logs an error and publishes a dead letter.
    pub(crate) async fn give_up(
        &self,
        finding: &str,
        ticket: Option<TicketKey>,
        failure: &EventFailure,
    ) -> Result<(), EventFailure> {
        tracing::error!(finding, error = %format_error_chain(failure), "found by poll and left out");
        // A dry run stores nothing.
        if self.seen.is_some() {
            return Ok(());
        }
        let letter = DeadLetter {
            what: domain::RecordKind::Ticket,
            id: finding.to_owned(),
            ticket,
            reason: format!("found by poll and left out: {failure}; a new change is looked at again"),
            at: bootstrap::read_wall_clock(),
        };
        Ok(self.queue.dead_letters().publish(&letter, Bytes::new()).await?)
    }

    async fn catch_up_ticket(
        &self,
        issue: &jira::ChangedIssue,
        since: Timestamp,
        sharing: &[&RepositoryRules],
        memory: &mut PollMemory,
    ) -> Result<Vec<EventOutcome>, EventFailure> {
        let mut outcomes = Vec::new();
        for comment in self.outside.comments_since(&issue.key, since).await? {
            if let Some(outcome) = self.remark_in(&issue.key, &comment, memory).await? {
                outcomes.push(outcome);
            }
        }
        let is_assignee = |account| sharing.iter().any(|rules| rules.jira.is_assignee(account));
        if issue.assignee.as_ref().is_some_and(is_assignee) {
            let given = TicketAssignedEvent::from_poll(issue.key.clone());
            outcomes.push(self.take(&given, TriggerChannel::Poll).await?);
        }
        if sharing.iter().any(|rules| rules.jira.reopens(&issue.status)) {
            let returned = TicketReturnEvent::from_poll(issue.key.clone(), issue.status.clone());
            outcomes.push(self.take(&returned, TriggerChannel::Poll).await?);
        }
        // The edits cost a request, so they are read only for rules with triage.
        if sharing.iter().any(|rules| !rules.triage.is_off()) {
            // Only the last edit matters, because a triage is about the current text.
            let last_edit = self.outside.text_edits_since(&issue.key, since).await?.pop();
            if let Some(written) = TextEditEvent::from_poll(issue, last_edit, since) {
                outcomes.push(self.take(&written, TriggerChannel::Poll).await?);
            }
        }
        Ok(outcomes)
    }

    /// Handles a comment that no earlier round handled. Returns `None` for own and known comments.
    async fn remark_in(
        &self,
        ticket: &TicketKey,
        comment: &jira::JiraComment,
        memory: &mut PollMemory,
    ) -> Result<Option<EventOutcome>, EventFailure> {
        // The marker identifies our comments even when the settings do not name the writer account.
        let is_ours = comment.by_us || !comment.marker.is_empty();
        let said = CommentEvent::from_jira_poll(ticket, comment);
        let remembered = format!("{ticket} {}", said.key().as_str());
        if is_ours || memory.knows(&remembered) {
            return Ok(None);
        }
        let outcome = self.take(&said, TriggerChannel::Poll).await?;
        memory.settle(remembered);
        Ok(Some(outcome))
    }

    /// Reads the comments on pull requests and issues of a repository since the last poll, for commands whose webhook
    /// was missed. Returns their number.
    pub(crate) async fn catch_up_github(
        &self,
        repository: &RepositoryName,
        memory: &mut PollMemory,
    ) -> Result<u64, EventFailure> {
        let look = self.look(format!("reconciled:github:{repository}")).await?;
        let comments = self.outside.repository_comments(repository, look.since).await?;
        let mut round = PollRound::default();
        for (number, comment) in comments {
            let said = CommentEvent::from_github_poll(repository, number, comment, look.now);
            let remembered = format!("{repository} {}", said.key().as_str());
            if !self.is_for_us(&said) || memory.knows(&remembered) {
                continue;
            }
            match self.take(&said, TriggerChannel::Poll).await {
                Ok(outcome) => {
                    round.add_read(count_new_triggers(&[outcome]));
                    memory.settle(remembered);
                }
                // A rate limit applies to all comments, so the rest of the round would fail too.
                Err(limit) if limit.is_limit() => {
                    self.settle_round(round, memory).await?;
                    return Err(limit);
                }
                Err(failure) => round.add_failure(FailedFinding {
                    finding: remembered,
                    ticket: None,
                    at: said.at(),
                    failure,
                }),
            }
        }
        let recovered = round.recovered();
        let waits_from = self.settle_round(round, memory).await?;
        self.looked(&look, waits_from.map_or(look.now, |waits| waits.min(look.now)))
            .await?;
        Ok(recovered)
    }
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

/// Number of triggers that are new in their ticket's log. Each is logged.
pub(crate) fn count_new_triggers(outcomes: &[EventOutcome]) -> u64 {
    let new = outcomes.iter().filter_map(|outcome| match outcome {
        EventOutcome::Appended {
            trigger,
            appended: AppendOutcome::New(_),
        } => Some(trigger),
        EventOutcome::Appended { .. }
        | EventOutcome::Known(_)
        | EventOutcome::NoChecks
        | EventOutcome::NothingFailed
        | EventOutcome::Nothing(_) => None,
    });
    new.inspect(
        |trigger| tracing::info!(ticket = %trigger.ticket, key = trigger.key.as_str(), "found by poll"),
    )
    .count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::FailureCause;

    fn build_changed_issue(second: i64) -> jira::ChangedIssue {
        jira::ChangedIssue {
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
            memory.is_hopeless(&describe_change(&issues[failed]), FailureCause::Outage);
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

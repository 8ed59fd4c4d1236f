//! Reopening of our closed pull request by a user.

use domain::{
    PullRequestEvent, PullRequestHead, PullRequestRecord, PullRequestRef, PullRequestStatus, RepositoryName,
    Trigger, TriggerKey, TriggerReason,
};

use super::{EventKind, EventVerdict, NewTrigger, closed::is_closed};
use crate::{
    facts::{DecisionFacts, Need},
    text::text_pin,
    webhook::payload::{UnreadablePayload, WebhookPayload, github as wire},
};

/// Reopening of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReopenEvent {
    repository: RepositoryName,
    number: u64,
    /// Actor; absent in a listing.
    by: Option<String>,
}

pub(super) fn from_webhook(hook: &WebhookPayload<'_>) -> Result<Option<ReopenEvent>, UnreadablePayload> {
    let Some(payload) = hook.read_event::<wire::PullRequestPayload>("pull_request")? else {
        return Ok(None);
    };
    Ok((payload.action == "reopened").then(|| ReopenEvent {
        repository: hook.repository(payload.repository),
        number: payload.pull_request.number,
        by: Some(payload.sender.login),
    }))
}

impl ReopenEvent {
    /// Pull request that a listing shows as open and our record as closed.
    pub(crate) fn from_poll(record: &PullRequestRecord) -> Self {
        Self {
            repository: record.pull_request.repository.clone(),
            number: record.pull_request.number,
            by: None,
        }
    }
}

impl EventKind for ReopenEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        if self.by.as_ref().is_some_and(|by| facts.is_our_user(by, None)) {
            return Ok(EventVerdict::nothing("our own account did it"));
        }
        let Some(record) = facts.record(&self.repository, &self.number)? else {
            return Ok(EventVerdict::nothing("not a pull request of ours"));
        };
        let (ticket, ours) = (&record.ticket, &record.pull_request);
        let history = facts.history(ticket)?;
        let (ends, again) = count_ends(history, ours);
        // The record is updated shortly after the log, so the log counts too.
        if record.status != PullRequestStatus::Closed && ends <= again {
            return Ok(EventVerdict::nothing("no closed pull request"));
        }
        let now = facts.pull_request(&self.repository, &self.number)?;
        if is_closed(now) {
            return Ok(EventVerdict::nothing("the pull request is closed again"));
        }
        let prefix = format!("reopened:{}#{}:", self.repository, self.number);
        // Earlier releases also counted pull requests of the same number in other repositories, so a number may
        // be taken.
        let number = if ends > again {
            ends.max(find_last_number(history, &prefix) + 1)
        } else {
            ends
        };
        let by = self.by.as_deref().unwrap_or("somebody");
        Ok(EventVerdict::from(NewTrigger {
            ticket: ticket.clone(),
            key: TriggerKey::new(format!("{prefix}{number}")),
            at: now.updated_at.unwrap_or(facts.now),
            actor: self.by.clone(),
            reason: PullRequestEvent::Reopened(PullRequestHead {
                pull_request: ours.clone(),
                head: now.head.clone(),
                by: text_pin::clean_text(by, 100),
            })
            .into(),
        }))
    }
}

/// Number of closes and reopenings of a pull request in the ticket's log. Neither a webhook nor a listing has an id of
/// the event, so the count identifies it.
fn count_ends(history: &[Trigger], ours: &PullRequestRef) -> (usize, usize) {
    let (mut closed, mut reopened) = (0, 0);
    for trigger in history {
        if let TriggerReason::PullRequest(PullRequestEvent::Closed(end)) = &trigger.reason {
            closed += usize::from(end.pull_request.is_same(ours));
        } else if let TriggerReason::PullRequest(PullRequestEvent::Reopened(again)) = &trigger.reason {
            reopened += usize::from(again.pull_request.is_same(ours));
        }
    }
    (closed, reopened)
}

/// Highest number among the stored keys of the reopenings; 0 without one.
fn find_last_number(history: &[Trigger], prefix: &str) -> usize {
    let numbers = history.iter().filter_map(|trigger| {
        let number = trigger.key.as_str().strip_prefix(prefix)?;
        number.parse().ok()
    });
    numbers.max().unwrap_or_default()
}

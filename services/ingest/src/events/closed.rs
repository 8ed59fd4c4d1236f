//! Merge or close of our pull request.

use domain::{
    PullRequestEnd, PullRequestEvent, PullRequestRecord, PullRequestRef, RepositoryName, TicketKey,
    Timestamp, TriggerKey,
};
use github::PullRequest;

use super::{EventKind, EventVerdict, NewTrigger};
use crate::{
    facts::{DecisionFacts, Need},
    text::text_pin,
    webhook::payload::{UnreadablePayload, WebhookPayload, github as wire},
};

/// Merge or close of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CloseEvent {
    repository: RepositoryName,
    number: u64,
    of: CloseOrigin,
}

/// Origin of the pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CloseOrigin {
    /// Pull request of a branch, closed by a user, from a webhook.
    Branch { branch: String, by: String },
    /// Pull request of ours, from a poll.
    Ours(TicketKey, PullRequestRef),
}

pub(super) fn from_webhook(hook: &WebhookPayload<'_>) -> Result<Option<CloseEvent>, UnreadablePayload> {
    let Some(wire::PullRequestPayload {
        action,
        pull_request,
        repository,
        sender,
    }) = hook.read_event("pull_request")?
    else {
        return Ok(None);
    };
    // A fork may have a branch with the name of ours, so a pull request from a fork is never taken for
    // ours.
    let is_from_here = pull_request
        .head
        .repo
        .is_none_or(|head| head.full_name == repository.full_name);
    if action != "closed" || !is_from_here {
        return Ok(None);
    }
    if pull_request
        .closed_at
        .as_deref()
        .and_then(Timestamp::parse)
        .is_none()
    {
        return Err(hook.broken("closed_at is not a time"));
    }
    let is_merged = pull_request.merged.unwrap_or(false);
    let by = pull_request
        .merged_by
        .filter(|_| is_merged)
        .unwrap_or(sender)
        .login;
    Ok(Some(CloseEvent {
        repository: hook.repository(repository),
        number: pull_request.number,
        of: CloseOrigin::Branch {
            branch: pull_request.head.r#ref,
            by,
        },
    }))
}

impl CloseEvent {
    /// Pull request of ours that a listing shows as closed.
    pub(crate) fn from_poll(record: &PullRequestRecord) -> Self {
        let ours = record.pull_request.clone();
        Self {
            repository: ours.repository.clone(),
            number: ours.number,
            of: CloseOrigin::Ours(record.ticket.clone(), ours),
        }
    }
}

impl EventKind for CloseEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let (ticket, ours, reported) = match &self.of {
            CloseOrigin::Ours(ticket, ours) => (ticket, ours, None),
            CloseOrigin::Branch { branch, by } => {
                if facts.is_our_user(by, None) {
                    return Ok(EventVerdict::nothing("our own account did it"));
                }
                let Some(record) = facts.branch(&self.repository, branch)? else {
                    return Ok(EventVerdict::nothing("not a branch of ours"));
                };
                let of_the_record = record.pull_request.as_ref();
                let Some(ours) = of_the_record.filter(|ours| ours.number == self.number) else {
                    return Ok(EventVerdict::nothing("another pull request of the branch"));
                };
                (&record.ticket, ours, Some(by))
            }
        };
        // The webhook may be late, and a listing does not contain the merging user. The current state counts.
        let now = facts.pull_request(&self.repository, &self.number)?;
        let Some(at) = now.closed_at else {
            return Ok(EventVerdict::nothing("the pull request is open again"));
        };
        let merged_by = now.merged_by.as_ref();
        // Only the webhook names the user who closed a pull request without a merge.
        let by = if now.merged {
            merged_by.or(reported)
        } else {
            reported.or(merged_by)
        };
        let by = by.map_or("somebody", String::as_str);
        let (key, event) = build_close_event(ours, now.merged, by, at);
        Ok(EventVerdict::from(NewTrigger {
            ticket: ticket.clone(),
            key,
            at,
            actor: Some(by.to_owned()),
            reason: event.into(),
        }))
    }
}

/// True for a merged or closed pull request.
pub(crate) const fn is_closed(pull_request: &PullRequest) -> bool {
    pull_request.closed_at.is_some()
}

/// End of our open pull request that GitHub moved to another place.
pub(crate) fn build_move(record: &PullRequestRecord, to: &str, at: Timestamp) -> NewTrigger {
    let ours = record.pull_request.clone();
    let end = PullRequestEnd {
        by: "GitHub".to_owned(),
        moved_to: Some(text_pin::clean_text(to, 200)),
        pull_request: ours.clone(),
    };
    NewTrigger {
        ticket: record.ticket.clone(),
        key: TriggerKey::new(format!("moved:{}#{}", ours.repository, ours.number)),
        at,
        actor: None,
        reason: PullRequestEvent::Closed(end).into(),
    }
}

fn build_close_event(
    ours: &PullRequestRef,
    merged: bool,
    by: &str,
    at: Timestamp,
) -> (TriggerKey, PullRequestEvent) {
    let PullRequestRef {
        repository, number, ..
    } = ours;
    let end = PullRequestEnd {
        pull_request: ours.clone(),
        by: text_pin::clean_text(by, 100),
        moved_to: None,
    };
    if merged {
        let key = TriggerKey::new(format!("merged:{repository}#{number}"));
        return (key, PullRequestEvent::Merged(end));
    }
    // Whole seconds: payloads and listings of GitHub differ in fractions of a second.
    let key = TriggerKey::new(format!("closed:{repository}#{number}:{}", at.unix_s()));
    (key, PullRequestEvent::Closed(end))
}

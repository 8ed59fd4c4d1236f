//! End of a requested review: its pull request was merged or closed, or the request was withdrawn.

use domain::{Job, RepositoryName, TicketKey, Trigger, TriggerKey, TriggerReason, WithdrawalReason};

use super::{
    EventKind, EventVerdict, NewTrigger,
    closed::is_closed,
    review_requested::{REQUESTED, is_waiting_for},
};
use crate::{
    facts::{DecisionFacts, Need},
    webhook::payload::{UnreadablePayload, WebhookPayload, github as wire},
};

/// Possible end of a requested review. The pull request contains the state, for webhooks and polls alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReviewWithdrawalEvent {
    repository: RepositoryName,
    number: u64,
    /// Actor; absent in a poll.
    by: Option<String>,
}

pub(super) fn from_webhook(
    hook: &WebhookPayload<'_>,
) -> Result<Option<ReviewWithdrawalEvent>, UnreadablePayload> {
    let Some(payload) = hook.read_event::<wire::PullRequestPayload>("pull_request")? else {
        return Ok(None);
    };
    let ends = matches!(payload.action.as_str(), "closed" | "review_request_removed");
    Ok(ends.then(|| ReviewWithdrawalEvent {
        number: payload.pull_request.number,
        repository: hook.repository(payload.repository),
        by: Some(payload.sender.login),
    }))
}

impl ReviewWithdrawalEvent {
    /// Changed pull request from a listing.
    pub(crate) const fn from_poll(repository: RepositoryName, number: u64) -> Self {
        Self {
            repository,
            number,
            by: None,
        }
    }

    /// True when the run of the key has ended. A row that does not contain the key yet decides nothing.
    fn is_over(ticket: &TicketKey, asked: &TriggerKey, facts: &DecisionFacts) -> Result<bool, Need> {
        let row = facts.row(ticket)?;
        let opened = facts.known(ticket, asked)?;
        let is_live = |sequence: u64| row.pending.iter().any(|pending| pending.sequence == sequence);
        Ok(opened.is_none_or(|sequence| row.cursor >= sequence && !is_live(sequence)))
    }

    /// True when we reviewed this same head: GitHub removes the request after a review.
    fn is_reviewed(&self, facts: &DecisionFacts, head: &domain::CommitId) -> Result<bool, Need> {
        let reviews = facts.reviews(&self.repository, &self.number)?;
        Ok(reviews.iter().any(|review| {
            review.commit.as_ref() == Some(head) && facts.is_our_user(&review.author, review.author_id)
        }))
    }
}

/// Key of the trigger that requested the last review.
fn find_last_review_key(history: &[Trigger]) -> Option<&TriggerKey> {
    let is_review = |trigger: &&Trigger| trigger.reason.job() == Some(Job::Review);
    history.iter().rfind(is_review).map(|trigger| &trigger.key)
}

impl EventKind for ReviewWithdrawalEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let rules = facts.book.for_repository(&self.repository);
        let Some(rules) = rules.filter(|rules| !rules.pull_request.reviewer.is_empty()) else {
            return Ok(EventVerdict::nothing("no rules that name a reviewer"));
        };
        let ticket = TicketKey::GitHub {
            repository: self.repository.clone(),
            number: self.number,
        };
        // Most pull requests have no active review of ours. The check comes first, because it reads nothing outside.
        let Some(asked) = find_last_review_key(facts.history(&ticket)?) else {
            return Ok(EventVerdict::nothing("no review of ours was asked for"));
        };
        if Self::is_over(&ticket, asked, facts)? {
            return Ok(EventVerdict::nothing("no review of ours is under way"));
        }
        let now = facts.pull_request(&self.repository, &self.number)?;
        let why = if is_closed(now) {
            if now.merged {
                WithdrawalReason::Merged
            } else {
                WithdrawalReason::Closed
            }
        } else if !asked.as_str().starts_with(REQUESTED)
            || is_waiting_for(&rules.pull_request.reviewer, now)
            || self.is_reviewed(facts, &now.head)?
        {
            return Ok(EventVerdict::nothing(
                "our review is still requested, or submitted",
            ));
        } else {
            WithdrawalReason::Unrequested
        };
        // The key allows one withdrawal per request, whatever its channel.
        let key = TriggerKey::new(format!("withdrawn:{}", asked.as_str()));
        Ok(EventVerdict::from(NewTrigger {
            ticket,
            key,
            at: facts.now,
            actor: self.by.clone(),
            reason: TriggerReason::ReviewWithdrawn { why },
        }))
    }
}

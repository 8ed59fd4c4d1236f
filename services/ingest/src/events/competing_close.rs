//! Merge of a competing pull request that names a ticket of ours: the ticket is done without our
//! change.

use domain::{PullRequestEnd, PullRequestEvent, RepositoryName, RepositoryRules, TicketKey, TriggerKey};
use github::PullRequest;

use super::{EventKind, EventVerdict, NewTrigger};
use crate::{
    facts::{DecisionFacts, Need},
    text::{
        text_pin,
        ticket_mentions::{PullRequestTexts, find_named_ticket},
    },
    webhook::payload::{UnreadablePayload, WebhookPayload, github as wire},
};

/// Closed pull request of any author, with the texts that may name a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClosedPullRequest {
    pub(super) repository: RepositoryName,
    pub(super) number: u64,
    title: String,
    branch: String,
    body: String,
}

impl ClosedPullRequest {
    /// Pull request of a webhook about a close with or without a merge; `None` for any other webhook.
    pub(super) fn from_webhook(
        hook: &WebhookPayload<'_>,
        is_merged: bool,
    ) -> Result<Option<Self>, UnreadablePayload> {
        let Some(payload) = hook.read_event::<wire::PullRequestPayload>("pull_request")? else {
            return Ok(None);
        };
        let is_it = payload.action == "closed" && payload.pull_request.merged.unwrap_or(false) == is_merged;
        Ok(is_it.then(|| Self {
            number: payload.pull_request.number,
            title: payload.pull_request.title,
            branch: payload.pull_request.head.r#ref,
            body: payload.pull_request.body.unwrap_or_default(),
            repository: hook.repository(payload.repository),
        }))
    }

    /// Pull request from a listing.
    pub(super) fn from_listing(repository: &RepositoryName, closed: &PullRequest) -> Self {
        Self {
            repository: repository.clone(),
            number: closed.number,
            title: closed.title.clone(),
            branch: closed.branch.clone(),
            body: closed.body.clone(),
        }
    }

    /// Ticket that the pull request names.
    pub(super) fn find_ticket(&self, rules: &RepositoryRules) -> Option<TicketKey> {
        let texts = PullRequestTexts {
            title: &self.title,
            branch: &self.branch,
            body: &self.body,
        };
        find_named_ticket(&texts, &self.repository, rules)
    }
}

/// Merge of a pull request of any author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompetingMergeEvent(ClosedPullRequest);

pub(super) fn from_webhook(
    hook: &WebhookPayload<'_>,
) -> Result<Option<CompetingMergeEvent>, UnreadablePayload> {
    Ok(ClosedPullRequest::from_webhook(hook, true)?.map(CompetingMergeEvent))
}

impl CompetingMergeEvent {
    /// Merged pull request from a listing.
    pub(crate) fn from_poll(repository: &RepositoryName, merged: &PullRequest) -> Self {
        Self(ClosedPullRequest::from_listing(repository, merged))
    }
}

impl EventKind for CompetingMergeEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let Some(rules) = facts.book.for_repository(&self.0.repository) else {
            return Ok(EventVerdict::nothing("no rules for the repository"));
        };
        // Most pull requests name no ticket. The check comes first, because it needs no read.
        let Some(ticket) = self.0.find_ticket(rules) else {
            return Ok(EventVerdict::nothing("it names no ticket of the project"));
        };
        let key = TriggerKey::new(format!("merged:{}#{}", self.0.repository, self.0.number));
        if let Some(sequence) = facts.known(&ticket, &key)? {
            return Ok(EventVerdict::Known(*sequence));
        }
        if facts.record(&self.0.repository, &self.0.number)?.is_some() {
            return Ok(EventVerdict::nothing("a pull request of ours"));
        }
        // Tickets without any request for our work are ignored.
        if facts.row(&ticket)?.cursor == 0 {
            return Ok(EventVerdict::nothing(
                "no work was requested on the ticket that it names",
            ));
        }
        let now = facts.pull_request(&self.0.repository, &self.0.number)?;
        let Some(at) = now.closed_at.filter(|_| now.merged) else {
            return Ok(EventVerdict::nothing("the pull request is not merged"));
        };
        // Until the change is on the target branch, the ticket is not done.
        if now.base_branch != rules.target_branch() {
            return Ok(EventVerdict::nothing("it was merged into another branch"));
        }
        let by = now.merged_by.as_deref().unwrap_or("somebody");
        Ok(EventVerdict::from(NewTrigger {
            ticket,
            key,
            at,
            actor: Some(by.to_owned()),
            reason: PullRequestEvent::MergedElsewhere(PullRequestEnd {
                pull_request: now.to_ref(&self.0.repository),
                by: text_pin::clean_text(by, 100),
                moved_to: None,
            })
            .into(),
        }))
    }
}

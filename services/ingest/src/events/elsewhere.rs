//! Merge of a competing pull request that names a ticket of ours: the ticket is done without our
//! change.

use domain::{PullRequestEnd, PullRequestEvent, RepositoryName, TriggerKey};
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

/// Merge of a pull request of any author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompetingMergeEvent {
    repository: RepositoryName,
    number: u64,
    title: String,
    branch: String,
    body: String,
}

pub(super) fn from_webhook(
    hook: &WebhookPayload<'_>,
) -> Result<Option<CompetingMergeEvent>, UnreadablePayload> {
    let WebhookPayload::GitHub {
        event: "pull_request",
        ..
    } = hook
    else {
        return Ok(None);
    };
    let payload: wire::PullRequestPayload = hook.read()?;
    let is_merged = payload.action == "closed" && payload.pull_request.merged.unwrap_or(false);
    Ok(is_merged.then(|| CompetingMergeEvent {
        number: payload.pull_request.number,
        title: payload.pull_request.title,
        body: payload.pull_request.body.unwrap_or_default(),
        branch: payload.pull_request.head.r#ref,
        repository: hook.repository(payload.repository),
    }))
}

impl CompetingMergeEvent {
    /// Merged pull request from a listing.
    pub(crate) fn from_poll(repository: &RepositoryName, merged: &PullRequest) -> Self {
        Self {
            repository: repository.clone(),
            number: merged.number,
            title: merged.title.clone(),
            branch: merged.branch.clone(),
            body: merged.body.clone(),
        }
    }
}

impl EventKind for CompetingMergeEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let Some(rules) = facts.book.for_repository(&self.repository) else {
            return Ok(EventVerdict::nothing("no rules for the repository"));
        };
        // Most pull requests name no ticket. The check comes first, because it needs no read.
        let texts = PullRequestTexts {
            title: &self.title,
            branch: &self.branch,
            body: &self.body,
        };
        let Some(ticket) = find_named_ticket(&texts, &self.repository, rules) else {
            return Ok(EventVerdict::nothing("it names no ticket of the project"));
        };
        let key = TriggerKey::new(format!("merged:{}#{}", self.repository, self.number));
        if let Some(sequence) = facts.known(&ticket, &key)? {
            return Ok(EventVerdict::Known(*sequence));
        }
        if facts.record(&self.repository, &self.number)?.is_some() {
            return Ok(EventVerdict::nothing("a pull request of ours"));
        }
        // Tickets without any request for our work are ignored.
        if facts.row(&ticket)?.cursor == 0 {
            return Ok(EventVerdict::nothing(
                "nobody asked for work on the ticket that it names",
            ));
        }
        let now = facts.pull_request(&self.repository, &self.number)?;
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
                pull_request: now.to_ref(&self.repository),
                by: text_pin::truncate_text(&text_pin::sanitize_text(by), 100),
            })
            .into(),
        }))
    }
}

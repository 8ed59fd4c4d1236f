//! Take a draft out of draft.

use async_trait::async_trait;
use domain::{CiRequired, CommitId, PullRequestRef, Refusal, TicketKey};
use github::PullRequestState;

use super::{Asked, Effect, EffectTarget, Outside, ci};
use crate::{made::Made, message, trouble::Trouble};

/// Take a draft out of draft.
#[derive(Debug)]
pub(crate) struct MarkReady {
    pub(crate) pull_request: PullRequestRef,
    /// The commit whose checks passed; another head is refused.
    pub(crate) head: CommitId,
}

#[async_trait]
impl Effect for MarkReady {
    fn name(&self) -> &'static str {
        "mark_ready"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::PullRequest(&self.pull_request)
    }

    async fn look(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Option<Made>, Trouble> {
        look(outside, &asked.report.ticket, &self.pull_request).await
    }

    async fn create(&self, outside: &Outside, _: &Asked<'_>) -> Result<Made, Trouble> {
        create(outside, &self.pull_request, &self.head).await
    }
}

/// Take a draft out of draft on which no check reports, unless something is configured to.
#[derive(Debug)]
pub(crate) struct MarkReadyUnchecked {
    pub(crate) pull_request: PullRequestRef,
    /// The commit without checks; another head is refused.
    pub(crate) head: CommitId,
    /// What the rules say.
    pub(crate) required: CiRequired,
}

#[async_trait]
impl Effect for MarkReadyUnchecked {
    fn name(&self) -> &'static str {
        "mark_ready_unchecked"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::PullRequest(&self.pull_request)
    }

    async fn look(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Option<Made>, Trouble> {
        look(outside, &asked.report.ticket, &self.pull_request).await
    }

    async fn create(&self, outside: &Outside, _: &Asked<'_>) -> Result<Made, Trouble> {
        create_unchecked(outside, &self.pull_request, &self.head, self.required).await
    }
}

/// Done when it is no draft, or closed: then there is nothing to hand over.
async fn look(
    outside: &Outside,
    ticket: &TicketKey,
    draft: &PullRequestRef,
) -> Result<Option<Made>, Trouble> {
    check_ours(outside, ticket, draft).await?;
    let found = outside
        .github
        .pull_request(&draft.repository, draft.number)
        .await?;
    let is_done = !found.draft || found.state == PullRequestState::Closed;
    Ok(is_done.then(Made::default))
}

/// Our record of the ticket's branch names it: a person's pull request is not ours to hand over.
async fn check_ours(outside: &Outside, ticket: &TicketKey, draft: &PullRequestRef) -> Result<(), Trouble> {
    let record = outside
        .own_branch(ticket, &draft.repository, &draft.branch)
        .await?;
    let known = record.and_then(|(record, _)| record.pull_request);
    if known.is_some_and(|known| known.number == draft.number) {
        Ok(())
    } else {
        Err(Trouble::Refused(Refusal::UnknownPullRequest {
            number: draft.number,
        }))
    }
}

/// Marks it without a check, unless one is configured to report on it.
async fn create_unchecked(
    outside: &Outside,
    draft: &PullRequestRef,
    head: &CommitId,
    required: CiRequired,
) -> Result<Made, Trouble> {
    let awaited = match required {
        CiRequired::Always => Some(message::required_by_rules()),
        CiRequired::Auto => ci::configured(outside, draft, head).await?,
        CiRequired::Never => None,
    };
    if awaited.is_none() {
        return create(outside, draft, head).await;
    }
    tracing::info!(repository = %draft.repository, number = draft.number, awaited, "no check has reported");
    Ok(Made {
        awaited,
        ..Made::default()
    })
}

/// Marks it, if the commit that was judged is still its head.
async fn create(outside: &Outside, draft: &PullRequestRef, head: &CommitId) -> Result<Made, Trouble> {
    let found = outside
        .github
        .pull_request(&draft.repository, draft.number)
        .await?;
    if found.head != *head {
        return Err(Trouble::Refused(Refusal::UncheckedHead {
            known: head.clone(),
            now: found.head,
        }));
    }
    let github = &outside.github;
    let marked = github.mark_ready(&draft.repository, draft.number, &found.node_id);
    failpoint::around("reporter.pull_request.mark_ready", marked).await?;
    tracing::info!(repository = %draft.repository, number = draft.number, "pull request ready for review");
    Ok(Made::default())
}

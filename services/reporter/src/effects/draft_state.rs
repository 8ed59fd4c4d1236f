//! Marks a draft pull request as ready for review, and converts it back to a draft.

use async_trait::async_trait;
use domain::{CiRequired, CiRules, CommitId, OutboundRefusal, PullRequestRef, RepositoryName, TicketKey};
use github::PullRequestState;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect, ci};
use crate::{
    effect_error::EffectError,
    message,
    receipt::{AwaitedCheck, EffectReceipts},
};

/// Marks a draft as ready after its checks passed.
#[derive(Debug)]
pub(crate) struct MarkReady {
    pub(crate) pull_request: PullRequestRef,
    /// Commit whose checks passed. Another head is refused.
    pub(crate) head: CommitId,
}

#[async_trait]
impl OutboundEffect for MarkReady {
    type Output = ();

    fn name(&self) -> &'static str {
        "mark_ready"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::PullRequest(&self.pull_request)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let is_done = is_handed_over(outside, &asked.report.ticket, &self.pull_request).await?;
        Ok(is_done.then_some(()))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        mark_if_unmoved(outside, &self.pull_request, &self.head).await
    }
}

/// Marks a draft as ready if no check reports on it and none is configured.
#[derive(Debug)]
pub(crate) struct MarkReadyUnchecked {
    pub(crate) pull_request: PullRequestRef,
    /// Commit without checks. Another head is refused.
    pub(crate) head: CommitId,
    /// Rules about checks and pull requests without them.
    pub(crate) rules: CiRules,
}

/// Output of a handover without checks.
#[derive(Debug)]
pub(crate) enum HandoverOutcome {
    /// The pull request is ready or closed.
    Ready,
    /// The pull request stays a draft, because a check has not reported.
    Awaits(AwaitedCheck),
}

impl From<HandoverOutcome> for EffectReceipts {
    fn from(outcome: HandoverOutcome) -> Self {
        match outcome {
            HandoverOutcome::Ready => Self::default(),
            HandoverOutcome::Awaits(check) => check.into(),
        }
    }
}

#[async_trait]
impl OutboundEffect for MarkReadyUnchecked {
    type Output = HandoverOutcome;

    fn name(&self) -> &'static str {
        "mark_ready_unchecked"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::PullRequest(&self.pull_request)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let is_done = is_handed_over(outside, &asked.report.ticket, &self.pull_request).await?;
        Ok(is_done.then_some(HandoverOutcome::Ready))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        create_unchecked(outside, &self.pull_request, &self.head, &self.rules).await
    }
}

/// Returns true if the pull request is ready or closed.
async fn is_handed_over(
    outside: &OutboundClients,
    ticket: &TicketKey,
    draft: &PullRequestRef,
) -> Result<bool, EffectError> {
    outside.own_pull_request(ticket, draft).await?;
    let found = outside.read_pull_request(draft).await?;
    // A closed pull request cannot be handed over.
    Ok(!found.draft || found.state == PullRequestState::Closed)
}

/// Marks it as ready, unless a check is configured that has not reported yet.
async fn create_unchecked(
    outside: &OutboundClients,
    draft: &PullRequestRef,
    head: &CommitId,
    rules: &CiRules,
) -> Result<HandoverOutcome, EffectError> {
    let awaited = match rules.required {
        CiRequired::Always => Some(message::required_by_rules()),
        CiRequired::Auto => ci::find_configured_ci(outside, draft, head, rules).await?,
        CiRequired::Never => None,
    };
    let Some(awaited) = awaited else {
        mark_if_unmoved(outside, draft, head).await?;
        return Ok(HandoverOutcome::Ready);
    };
    tracing::info!(repository = %draft.repository, number = draft.number, awaited, "no check has reported");
    Ok(HandoverOutcome::Awaits(AwaitedCheck(awaited)))
}

/// Marks it as ready if the judged commit is still its head.
async fn mark_if_unmoved(
    outside: &OutboundClients,
    draft: &PullRequestRef,
    head: &CommitId,
) -> Result<(), EffectError> {
    let found = outside.read_pull_request(draft).await?;
    // A push between the checks and this call would make an unchecked commit ready.
    if found.head != *head {
        return Err(EffectError::Refused(OutboundRefusal::UncheckedHead {
            known: head.clone(),
            now: found.head,
        }));
    }
    Ok(end_draft(&outside.github, &draft.repository, &found).await?)
}

/// Marks a draft as ready for review.
pub(crate) async fn end_draft(
    github: &github::GitHubWriter,
    repository: &RepositoryName,
    draft: &github::PullRequest,
) -> Result<(), github::Error> {
    let marked = github.pull_requests().mark_ready(repository, draft);
    failpoint::around("reporter.pull_request.mark_ready", marked).await?;
    tracing::info!(%repository, number = draft.number, "pull request ready for review");
    Ok(())
}

/// Converts a pull request of ours to a draft: its head changed, so its checks have to pass again.
#[derive(Debug)]
pub(crate) struct BackToDraft {
    pub(crate) pull_request: PullRequestRef,
}

#[async_trait]
impl OutboundEffect for BackToDraft {
    type Output = ();

    fn name(&self) -> &'static str {
        "back_to_draft"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::PullRequest(&self.pull_request)
    }

    /// Done if the pull request is a draft or closed.
    async fn find_result(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let now = outside.read_pull_request(&self.pull_request).await?;
        let is_done = now.draft || now.state == PullRequestState::Closed;
        Ok(is_done.then_some(()))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        let now = outside.read_pull_request(&self.pull_request).await?;
        let converted = outside
            .github
            .pull_requests()
            .back_to_draft(repository, &now, message::render_progress_note())
            .await;
        match converted {
            // A person merged or closed it between the read and the write.
            Err(github::Error::Rejected { .. }) if self.find_result(outside, asked).await?.is_some() => {}
            done => done?,
        }
        tracing::info!(%repository, number, "pull request is a draft again");
        Ok(())
    }
}

//! Resolves a thread of a review.

use std::ops::RangeInclusive;

use async_trait::async_trait;
use domain::{CommitId, PullRequestRef, ReviewRound, ReviewThread};
use git::BareRepository;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{effect_error::EffectError, mirror::run_blocking};

// Lines around a thread's line in which a change counts as one for the thread.
const NEAR_LINES: u32 = 10;

/// Reason why a person has to resolve a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StaysOpen {
    /// No review of the ticket contains it.
    NoReview,
    /// An account without the right to give orders began it.
    Stranger,
    /// The commit is not the pushed one.
    OtherCommit,
    /// The commit does not change the place of the thread.
    OtherPlace,
}

/// Resolves the thread of a comment whose request is done. A person can reopen it.
///
/// In repositories that require resolved conversations, this enables the merge, so the model's statement is not
/// sufficient: the commit has to change the place of the thread, and an account with the right to give orders has to
/// have begun it.
#[derive(Debug)]
pub(crate) struct ResolveThread {
    pub(crate) pull_request: PullRequestRef,
    /// Id of the comment that began the thread.
    pub(crate) comment: u64,
    /// Commit that was pushed for the review.
    pub(crate) commit: CommitId,
}

#[async_trait]
impl OutboundEffect for ResolveThread {
    type Output = ();

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "resolve_thread"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::ReviewThread(&self.pull_request, self.comment)
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        if let Some(why) = self.why_it_stays(outside, asked).await? {
            tracing::info!(%repository, number, comment = self.comment, ?why, "review thread stays open");
            return Ok(());
        }
        let github = &outside.github;
        if let Some(thread) = github
            .reviews()
            .open_thread(repository, *number, self.comment)
            .await?
        {
            github.reviews().resolve_thread(repository, &thread).await?;
            tracing::info!(%repository, number, "review thread resolved");
        }
        Ok(())
    }
}

impl ResolveThread {
    /// Returns the reason why a person has to resolve it; `None` if the effect may.
    async fn why_it_stays(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<StaysOpen>, EffectError> {
        let ticket = &asked.report.ticket;
        let read = outside.triggers.read_each_after(ticket, 0).await?;
        let rounds = read
            .iter()
            .filter_map(|(_, trigger)| trigger.as_ref().ok())
            .filter_map(|trigger| trigger.reason.job_request()?.about.round());
        // The newest round, because a thread may be part of several reviews.
        let Some((round, thread)) = rounds
            .filter_map(|round| Some((round, self.thread_in(round)?)))
            .last()
        else {
            return Ok(Some(StaysOpen::NoReview));
        };
        if round.by_program || thread.earlier.first().is_some_and(|begun| begun.is_stranger) {
            return Ok(Some(StaysOpen::Stranger));
        }
        let branches = outside.branches.of_ticket(ticket).await?;
        let is_ours = |record: &domain::BranchRecord| {
            record.repository == self.pull_request.repository && record.head == self.commit
        };
        if !branches.iter().any(is_ours) {
            return Ok(Some(StaysOpen::OtherCommit));
        }
        let touched = self.touched(outside, &round.head, &thread.path).await?;
        let is_near = |lines: &RangeInclusive<u32>| match thread.line {
            Some(line) => {
                let line = u32::try_from(line).unwrap_or(u32::MAX);
                lines.start().saturating_sub(NEAR_LINES) <= line
                    && line <= lines.end().saturating_add(NEAR_LINES)
            }
            // A thread about a whole file has no line.
            None => true,
        };
        Ok((!touched.iter().any(is_near)).then_some(StaysOpen::OtherPlace))
    }

    fn thread_in<'a>(&self, round: &'a ReviewRound) -> Option<&'a ReviewThread> {
        let is_here = round.pull_request.is_same(&self.pull_request);
        round
            .threads
            .iter()
            .find(|thread| is_here && thread.id == self.comment)
    }

    /// Returns the lines of a file at the reviewed commit that the pushed commit changes.
    async fn touched(
        &self,
        outside: &OutboundClients,
        reviewed: &CommitId,
        path: &str,
    ) -> Result<Vec<RangeInclusive<u32>>, EffectError> {
        let repository = &self.pull_request.repository;
        let mirror = outside.mirrors.with_commit(repository, &self.commit).await?;
        let (reviewed, pushed, path) = (reviewed.clone(), self.commit.clone(), path.to_owned());
        run_blocking(move || {
            let mirror = BareRepository::open(&mirror)?;
            if mirror.contains(&reviewed) {
                mirror.touched_lines(&reviewed, &pushed, &path)
            } else {
                // The reviewed commit may be gone from the mirror after a force-push; then nothing proves a change.
                Ok(Vec::new())
            }
        })
        .await
    }
}

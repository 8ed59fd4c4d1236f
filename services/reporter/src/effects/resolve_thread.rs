//! Resolve a thread of a review.

use std::ops::RangeInclusive;

use async_trait::async_trait;
use domain::{CommitId, PullRequestRef, Reason, ReviewRound, ReviewThread};
use git::Repository;

use super::{Asked, Effect, EffectTarget, Outside};
use crate::{made::Made, mirror::blocking, trouble::Trouble};

/// Lines around that of a thread in which a change counts as one for it.
const NEAR_LINES: u32 = 10;

/// Reason why people have to resolve a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StaysOpen {
    /// No review of the ticket brought it.
    NoReview,
    /// It was begun by an account that may give no orders.
    Stranger,
    /// The commit is not the one that was pushed.
    OtherCommit,
    /// The commit does not change the place that the thread is about.
    OtherPlace,
}

/// Resolve the thread that a comment began: what it asked for was done, and the reply says where. A person can open it
/// again. Where conversations have to be resolved before a merge this opens the merge, so the model's word does not do: the
/// commit has to change the place that the thread is about, and somebody who may give orders has to have begun it.
#[derive(Debug)]
pub(crate) struct ResolveThread {
    pub(crate) pull_request: PullRequestRef,
    /// The comment's id.
    pub(crate) comment: u64,
    /// The commit that was pushed for the review.
    pub(crate) commit: CommitId,
}

#[async_trait]
impl Effect for ResolveThread {
    fn name(&self) -> &'static str {
        "resolve_thread"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::ReviewThread(&self.pull_request, self.comment)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        if let Some(why) = self.why_it_stays(outside, asked).await? {
            tracing::info!(%repository, number, comment = self.comment, ?why, "review thread stays open");
            return Ok(Made::default());
        }
        let github = &outside.github;
        if let Some(thread) = github.open_thread(repository, *number, self.comment).await? {
            github.resolve_thread(repository, &thread).await?;
            tracing::info!(%repository, number, "review thread resolved");
        }
        Ok(Made::default())
    }
}

impl ResolveThread {
    /// The reason why people have to resolve it; absent: there is none.
    async fn why_it_stays(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Option<StaysOpen>, Trouble> {
        let ticket = &asked.report.ticket;
        let read = outside.triggers.read_each_after(ticket, 0).await?;
        let rounds = read
            .iter()
            .filter_map(|(_, trigger)| trigger.as_ref().ok())
            .filter_map(|trigger| match &trigger.reason {
                Reason::JobRequested(request) => request.about.round(),
                _ => None,
            });
        // The newest: a thread may come back in a later review.
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
            None => true,
        };
        Ok((!touched.iter().any(is_near)).then_some(StaysOpen::OtherPlace))
    }

    fn thread_in<'a>(&self, round: &'a ReviewRound) -> Option<&'a ReviewThread> {
        let ours = &self.pull_request;
        let is_here =
            round.pull_request.repository == ours.repository && round.pull_request.number == ours.number;
        round
            .threads
            .iter()
            .find(|thread| is_here && thread.id == self.comment)
    }

    /// The lines of a file at the reviewed commit that the pushed one changes.
    async fn touched(
        &self,
        outside: &Outside,
        reviewed: &CommitId,
        path: &str,
    ) -> Result<Vec<RangeInclusive<u32>>, Trouble> {
        let repository = &self.pull_request.repository;
        let mirror = outside.mirrors.with_commit(repository, &self.commit).await?;
        let (reviewed, pushed, path) = (reviewed.clone(), self.commit.clone(), path.to_owned());
        blocking(move || {
            let mirror = Repository::open(&mirror)?;
            match mirror.contains(&reviewed) {
                true => mirror.touched_lines(&reviewed, &pushed, &path),
                false => Ok(Vec::new()),
            }
        })
        .await
    }
}

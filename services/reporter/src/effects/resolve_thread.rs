//! Resolve a thread of a review.

use async_trait::async_trait;
use domain::PullRequestRef;

use super::{Asked, Effect, Outside};
use crate::{clearance::EffectTarget, made::Made, trouble::Trouble};

/// Resolve the thread that a comment began: what it asked for was done, and the reply says where. A person can open it
/// again.
#[derive(Debug)]
pub(crate) struct ResolveThread {
    pub(crate) pull_request: PullRequestRef,
    /// The comment's id.
    pub(crate) comment: u64,
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

    async fn create(&self, outside: &Outside, _: &Asked<'_>) -> Result<Made, Trouble> {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        let github = &outside.github;
        if let Some(thread) = github.open_thread(repository, *number, self.comment).await? {
            github.resolve_thread(repository, &thread).await?;
            tracing::info!(%repository, number, "review thread resolved");
        }
        Ok(Made::default())
    }
}

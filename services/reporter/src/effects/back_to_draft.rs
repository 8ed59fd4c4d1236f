//! Make a pull request a draft again.

use async_trait::async_trait;
use domain::PullRequestRef;
use github::PullRequestState;

use super::{Asked, Effect, EffectTarget, Outside};
use crate::{made::Made, trouble::Trouble};

/// Make a pull request of ours a draft again: its head changed, and its checks have to pass first.
#[derive(Debug)]
pub(crate) struct BackToDraft {
    pub(crate) pull_request: PullRequestRef,
}

#[async_trait]
impl Effect for BackToDraft {
    fn name(&self) -> &'static str {
        "back_to_draft"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::PullRequest(&self.pull_request)
    }

    /// Done when it is a draft, or over.
    async fn look(&self, outside: &Outside, _: &Asked<'_>) -> Result<Option<Made>, Trouble> {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        let now = outside.github.pull_request(repository, *number).await?;
        let is_done = now.draft || now.state == PullRequestState::Closed;
        Ok(is_done.then(Made::default))
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        let now = outside.github.pull_request(repository, *number).await?;
        let converted = outside
            .github
            .back_to_draft(repository, *number, &now.node_id)
            .await;
        match converted {
            // Somebody merged or closed it in between.
            Err(github::Error::Rejected { .. }) if self.look(outside, asked).await?.is_some() => {}
            done => done?,
        }
        tracing::info!(%repository, number, "pull request is a draft again");
        Ok(Made::default())
    }
}

//! Converts a pull request to a draft.

use async_trait::async_trait;
use domain::PullRequestRef;
use github::PullRequestState;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::effect_error::EffectError;

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
    async fn look(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        let now = outside.github.pull_request(repository, *number).await?;
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
        let now = outside.github.pull_request(repository, *number).await?;
        let converted = outside
            .github
            .back_to_draft(repository, *number, &now.node_id)
            .await;
        match converted {
            // A person merged or closed it between the read and the write.
            Err(github::Error::Rejected { .. }) if self.look(outside, asked).await?.is_some() => {}
            done => done?,
        }
        tracing::info!(%repository, number, "pull request is a draft again");
        Ok(())
    }
}

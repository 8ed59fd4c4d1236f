//! Closes a discussion.

use async_trait::async_trait;
use domain::RepositoryName;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::effect_error::EffectError;

/// Closes a discussion as resolved.
#[derive(Debug)]
pub(crate) struct CloseDiscussion {
    pub(crate) repository: RepositoryName,
    pub(crate) number: u64,
}

#[async_trait]
impl OutboundEffect for CloseDiscussion {
    type Output = ();

    fn name(&self) -> &'static str {
        "close_discussion"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Discussion(&self.repository, self.number)
    }

    async fn look(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let found = outside.github.discussion(&self.repository, self.number).await?;
        Ok((!found.is_open).then_some(()))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let found = outside.github.discussion(&self.repository, self.number).await?;
        if found.is_open {
            outside
                .github
                .close_discussion(&self.repository, &found.node_id)
                .await?;
            tracing::info!(repository = %self.repository, number = self.number, "discussion closed");
        }
        Ok(())
    }
}

//! Closes a discussion.

use async_trait::async_trait;
use domain::RepositoryName;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{effect_error::EffectError, effect_output::EffectOutput};

/// Closes a discussion as resolved.
#[derive(Debug)]
pub(crate) struct CloseDiscussion {
    pub(crate) repository: RepositoryName,
    pub(crate) number: u64,
}

#[async_trait]
impl OutboundEffect for CloseDiscussion {
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
    ) -> Result<Option<EffectOutput>, EffectError> {
        let found = outside.github.discussion(&self.repository, self.number).await?;
        Ok((!found.is_open).then(EffectOutput::default))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<EffectOutput, EffectError> {
        let found = outside.github.discussion(&self.repository, self.number).await?;
        if found.is_open {
            outside
                .github
                .close_discussion(&self.repository, &found.node_id)
                .await?;
            tracing::info!(repository = %self.repository, number = self.number, "discussion closed");
        }
        Ok(EffectOutput::default())
    }
}

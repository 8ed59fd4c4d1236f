//! Adds a reaction to an object on GitHub.

use async_trait::async_trait;
use domain::{ReactionKind, ReactionSubject};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::effect_error::EffectError;

/// Adds a reaction: eyes when work on a request has begun, a rocket when it is done.
#[derive(Debug)]
pub(crate) struct AddReaction {
    pub(crate) to: ReactionSubject,
    pub(crate) reaction: ReactionKind,
}

#[async_trait]
impl OutboundEffect for AddReaction {
    type Output = ();

    fn name(&self) -> &'static str {
        self.reaction.as_str()
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Reactable(&self.to)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        outside.github.react(&self.to, self.reaction).await?;
        Ok(())
    }
}

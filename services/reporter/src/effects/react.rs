//! Adds a reaction to an object on GitHub.

use async_trait::async_trait;
use domain::{Reactable, Reaction};

use super::{Asked, Effect, EffectTarget, Outside};
use crate::{made::Made, trouble::Trouble};

/// Adds a reaction: eyes when work on a request has begun, a rocket when it is done.
#[derive(Debug)]
pub(crate) struct React {
    pub(crate) to: Reactable,
    pub(crate) reaction: Reaction,
}

#[async_trait]
impl Effect for React {
    fn name(&self) -> &'static str {
        self.reaction.as_str()
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Reactable(&self.to)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(&self, outside: &Outside, _: &Asked<'_>) -> Result<Made, Trouble> {
        outside.github.react(&self.to, self.reaction).await?;
        Ok(Made::default())
    }
}

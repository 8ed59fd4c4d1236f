//! Closes a discussion.

use async_trait::async_trait;
use domain::RepositoryName;

use super::{Asked, Effect, EffectTarget, Outside};
use crate::{made::Made, trouble::Trouble};

/// Closes a discussion as resolved.
#[derive(Debug)]
pub(crate) struct CloseDiscussion {
    pub(crate) repository: RepositoryName,
    pub(crate) number: u64,
}

#[async_trait]
impl Effect for CloseDiscussion {
    fn name(&self) -> &'static str {
        "close_discussion"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Discussion(&self.repository, self.number)
    }

    async fn look(&self, outside: &Outside, _: &Asked<'_>) -> Result<Option<Made>, Trouble> {
        let found = outside.github.discussion(&self.repository, self.number).await?;
        Ok((!found.is_open).then(Made::default))
    }

    async fn create(&self, outside: &Outside, _: &Asked<'_>) -> Result<Made, Trouble> {
        let found = outside.github.discussion(&self.repository, self.number).await?;
        if found.is_open {
            outside
                .github
                .close_discussion(&self.repository, &found.node_id)
                .await?;
            tracing::info!(repository = %self.repository, number = self.number, "discussion closed");
        }
        Ok(Made::default())
    }
}

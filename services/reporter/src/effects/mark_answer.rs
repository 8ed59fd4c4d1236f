//! Marks the last comment of a discussion as its answer.

use async_trait::async_trait;
use domain::RepositoryName;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{effect_error::EffectError, receipt::WrittenComment};

/// Marks the comment of the same report as the answer, if the category has answers and none is marked.
#[derive(Debug)]
pub(crate) struct MarkAnswer {
    pub(crate) repository: RepositoryName,
    pub(crate) number: u64,
}

#[async_trait]
impl OutboundEffect for MarkAnswer {
    type Output = ();

    fn name(&self) -> &'static str {
        "mark_answer"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Discussion(&self.repository, self.number)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let Some(WrittenComment(comment)) = asked.receipts.last() else {
            return Ok(());
        };
        let found = outside.github.discussion(&self.repository, self.number).await?;
        if found.is_answerable && found.answer.is_none() {
            outside.github.mark_answer(&self.repository, comment).await?;
            tracing::info!(repository = %self.repository, number = self.number, "answer marked");
        }
        Ok(())
    }
}

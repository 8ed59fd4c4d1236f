//! Closes a GitHub issue.

use async_trait::async_trait;
use domain::RepositoryName;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{effect_error::EffectError, receipt::TransitionResult};

/// Closes a GitHub issue as completed. GitHub does so itself only when a pull request that names the issue is merged
/// into the default branch.
#[derive(Debug)]
pub(crate) struct CloseIssue {
    pub(crate) repository: RepositoryName,
    pub(crate) number: u64,
}

#[async_trait]
impl OutboundEffect for CloseIssue {
    type Output = TransitionResult;

    fn name(&self) -> &'static str {
        "close_issue"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Issue(&self.repository, self.number)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn look(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let is_open = outside
            .github
            .is_issue_open(&self.repository, self.number)
            .await?;
        Ok((!is_open).then(closed_result))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        outside.github.close_issue(&self.repository, self.number).await?;
        tracing::info!(repository = %self.repository, number = self.number, "issue closed");
        Ok(closed_result())
    }
}

fn closed_result() -> TransitionResult {
    TransitionResult::To("Closed".to_owned())
}

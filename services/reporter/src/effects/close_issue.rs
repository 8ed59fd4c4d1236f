//! Closes a GitHub issue.

use async_trait::async_trait;
use domain::RepositoryName;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    effect_error::EffectError,
    effect_output::{EffectOutput, TransitionResult},
};

/// Closes a GitHub issue as completed. GitHub does so itself only when a pull request that names the issue is merged
/// into the default branch.
#[derive(Debug)]
pub(crate) struct CloseIssue {
    pub(crate) repository: RepositoryName,
    pub(crate) number: u64,
}

#[async_trait]
impl OutboundEffect for CloseIssue {
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
    ) -> Result<Option<EffectOutput>, EffectError> {
        let is_open = outside
            .github
            .is_issue_open(&self.repository, self.number)
            .await?;
        Ok((!is_open).then(closed_output))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<EffectOutput, EffectError> {
        outside.github.close_issue(&self.repository, self.number).await?;
        tracing::info!(repository = %self.repository, number = self.number, "issue closed");
        Ok(closed_output())
    }
}

fn closed_output() -> EffectOutput {
    EffectOutput {
        moved: Some(TransitionResult::To("Closed".to_owned())),
        ..EffectOutput::default()
    }
}

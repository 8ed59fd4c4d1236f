//! Shows the rounds of work in a check run on the head of the pull request.

use async_trait::async_trait;
use domain::RepositoryName;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{effect_error::EffectError, receipt::CheckRunId, rounds::RoundEvent};

/// Check run `Journeyman` with the rounds of work on the pull request.
#[derive(Debug)]
pub(crate) struct CheckRun {
    /// Repository of the check run; absent: the round is recorded, and a later report shows it.
    pub(crate) repository: Option<RepositoryName>,
    pub(crate) event: RoundEvent,
}

#[async_trait]
impl OutboundEffect for CheckRun {
    type Output = Option<CheckRunId>;

    fn name(&self) -> &'static str {
        "check_run"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::CheckRun(self.repository.as_ref())
    }

    fn only_tells(&self) -> bool {
        true
    }

    fn shows_round(&self) -> Option<(&RoundEvent, Option<&RepositoryName>)> {
        Some((&self.event, self.repository.as_ref()))
    }

    /// An App without the permission for checks makes no check run. The report succeeds, and `doctor` reports the
    /// missing permission.
    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let Some((on, text)) = asked.rounds else {
            return Ok(None);
        };
        match outside.show_check_run(on, text).await {
            Ok(id) => Ok(Some(CheckRunId(id))),
            Err(EffectError::Denied { detail, .. }) => {
                tracing::info!(%detail, "no check run: the writer's App lacks the permission for checks");
                Ok(None)
            }
            Err(trouble) => Err(trouble),
        }
    }
}

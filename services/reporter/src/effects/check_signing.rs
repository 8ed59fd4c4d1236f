//! Checks before the work that its commits can be signed where the repository requires it.

use async_trait::async_trait;
use domain::{OutboundRefusal, RepositoryName, cause::format_error_chain};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::effect_error::EffectError;

/// Reads whether the target branch requires signatures. Refuses work whose commits could not be signed.
#[derive(Debug)]
pub(crate) struct CheckSigning {
    /// Repository that receives the change.
    pub(crate) repository: RepositoryName,
}

#[async_trait]
impl OutboundEffect for CheckSigning {
    type Output = ();

    fn name(&self) -> &'static str {
        "check_signing"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Repository(&self.repository)
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        // Without rules, the push is refused anyway.
        let Some(rules) = asked.rules else { return Ok(()) };
        let branches = [rules.target_branch()];
        let chosen = outside
            .signer
            .choose_way(&outside.github, &self.repository, &branches)
            .await;
        match chosen {
            Err(refused @ EffectError::Refused(OutboundRefusal::NoSigningKey { .. })) => Err(refused),
            // The push reads the rules again, so a failure here must not keep the work back.
            Err(
                error @ (EffectError::Refused(_)
                | EffectError::Failed(_)
                | EffectError::Missing(_)
                | EffectError::Denied { .. }),
            ) => {
                tracing::warn!(repository = %self.repository, error = %format_error_chain(&error), "rules about signatures cannot be read");
                Ok(())
            }
            Err(error) => Err(error),
            Ok(way) => {
                tracing::debug!(repository = %self.repository, ?way, "way to sign commits");
                Ok(())
            }
        }
    }
}

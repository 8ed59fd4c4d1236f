//! Checks before the work that a change can be delivered: rights of the account, and signatures.

use async_trait::async_trait;
use domain::{OutboundRefusal, RepositoryName, RepositoryRules, TicketKey, cause::format_error_chain};
use github::permissions::list_delivery_permissions;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::effect_error::{EffectError, WritingAccount};

/// Reads what the repository requires of a change. Refuses work whose result could not be delivered.
#[derive(Debug)]
pub(crate) struct CheckRequirements {
    /// Repository that receives the change.
    pub(crate) repository: RepositoryName,
}

#[async_trait]
impl OutboundEffect for CheckRequirements {
    type Output = ();

    // The first requirement was the signature of commits, and the name never changes.
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
        if self.repository.local_folder().is_some() {
            return Ok(());
        }
        pass_unreadable(&self.repository, "permissions", self.check_rights(outside, asked).await)?;
        pass_unreadable(&self.repository, "rules about signatures", self.check_signing(outside, rules).await)
    }
}

impl CheckRequirements {
    async fn check_rights(&self, outside: &OutboundClients, asked: &EffectContext<'_>) -> Result<(), EffectError> {
        let is_issue = matches!(asked.present, TicketKey::GitHub { .. });
        let needed = list_delivery_permissions(is_issue);
        let missing = outside.github.missing_permissions(&self.repository, &needed).await?;
        if missing.is_empty() {
            return Ok(());
        }
        let section = WritingAccount::GitHub.section(asked.report);
        let rights: Vec<String> = missing.iter().map(ToString::to_string).collect();
        tracing::error!(section, repository = %self.repository, missing = rights.join(", "), "permissions missing");
        Err(EffectError::Refused(OutboundRefusal::MissingRights {
            repository: self.repository.clone(),
            rights,
            section,
        }))
    }

    async fn check_signing(&self, outside: &OutboundClients, rules: &RepositoryRules) -> Result<(), EffectError> {
        let branches = [rules.target_branch()];
        let way = outside
            .signer
            .choose_way(&outside.github, &self.repository, &branches)
            .await?;
        tracing::debug!(repository = %self.repository, ?way, "way to sign commits");
        Ok(())
    }
}

/// Turns a permanent failure to read a requirement into success: the push meets the requirement again, so the failure
/// must not keep the work back.
fn pass_unreadable(
    repository: &RepositoryName,
    what: &str,
    checked: Result<(), EffectError>,
) -> Result<(), EffectError> {
    match checked {
        Err(EffectError::Refused(refusal)) if refusal.needs_operator() => Err(EffectError::Refused(refusal)),
        Err(
            error @ (EffectError::Refused(_)
            | EffectError::Failed(_)
            | EffectError::Missing(_)
            | EffectError::Denied { .. }),
        ) => {
            tracing::warn!(%repository, what, error = %format_error_chain(&error), "requirement cannot be read");
            Ok(())
        }
        Err(error) => Err(error),
        Ok(()) => Ok(()),
    }
}

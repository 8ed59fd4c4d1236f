//! Links a Jira issue to another one.

use async_trait::async_trait;
use domain::TicketKey;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    effect_error::EffectError,
    effect_output::{EffectOutput, TriageWish, UnsetChoice, UnsetReason},
};

/// Adds a Jira link such as "duplicates" to another issue of the same site. For GitHub issues, the comment that names
/// the other issue is the link.
#[derive(Debug)]
pub(crate) struct LinkIssues {
    pub(crate) issue: TicketKey,
    /// Name of the link type.
    pub(crate) link_type: String,
    /// Key of the other issue, as people write it.
    pub(crate) to: String,
}

#[async_trait]
impl OutboundEffect for LinkIssues {
    fn name(&self) -> &'static str {
        "link_issues"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.issue)
    }

    fn only_tells(&self) -> bool {
        true
    }

    /// Done if any link between both issues exists, of any type and author.
    async fn look(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Option<EffectOutput>, EffectError> {
        let known = outside.jira.sorted(&self.issue).await?.links;
        Ok(known
            .iter()
            .any(|(key, _)| *key == self.to)
            .then(|| self.linked()))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<EffectOutput, EffectError> {
        let wish = TriageWish::Link { to: self.to.clone() };
        let known = outside.jira.link_type(&self.issue, &self.link_type).await?;
        let Some(link_type) = known else {
            let name = self.link_type.clone();
            return Ok(UnsetChoice::because(wish, UnsetReason::NoLinkType { name }));
        };
        let linked = outside.jira.link(&self.issue, &link_type, &self.to).await;
        let made = UnsetChoice::when_refused(linked.map_err(EffectError::from), wish)?;
        if made.left.is_empty() {
            tracing::info!(ticket = %self.issue, to = self.to, "tickets linked");
            return Ok(self.linked());
        }
        Ok(made)
    }
}

impl LinkIssues {
    fn linked(&self) -> EffectOutput {
        EffectOutput {
            linked: Some(self.to.clone()),
            ..EffectOutput::default()
        }
    }
}

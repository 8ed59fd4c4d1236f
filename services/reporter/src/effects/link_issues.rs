//! Links a Jira issue to another one.

use async_trait::async_trait;
use domain::TicketKey;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    effect_error::EffectError,
    receipt::{DuplicateLink, EffectReceipts, TriageWish, UnsetChoice, UnsetReason},
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

/// Output of the effect.
#[derive(Debug)]
pub(crate) enum LinkOutcome {
    /// The issues are linked.
    Linked(DuplicateLink),
    /// The link is left to people.
    Left(UnsetChoice),
}

impl From<LinkOutcome> for EffectReceipts {
    fn from(outcome: LinkOutcome) -> Self {
        match outcome {
            LinkOutcome::Linked(link) => link.into(),
            LinkOutcome::Left(choice) => choice.into(),
        }
    }
}

#[async_trait]
impl OutboundEffect for LinkIssues {
    type Output = LinkOutcome;

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
    ) -> Result<Option<Self::Output>, EffectError> {
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
    ) -> Result<Self::Output, EffectError> {
        let wish = TriageWish::Link { to: self.to.clone() };
        let known = outside.jira.link_type(&self.issue, &self.link_type).await?;
        let Some(link_type) = known else {
            let name = self.link_type.clone();
            let why = UnsetReason::NoLinkType { name };
            return Ok(LinkOutcome::Left(UnsetChoice { wish, why }));
        };
        let linked = outside.jira.link(&self.issue, &link_type, &self.to).await;
        if let Some(left) = UnsetChoice::when_refused(linked.map_err(EffectError::from), wish)? {
            return Ok(LinkOutcome::Left(left));
        }
        tracing::info!(ticket = %self.issue, to = self.to, "tickets linked");
        Ok(self.linked())
    }
}

impl LinkIssues {
    fn linked(&self) -> LinkOutcome {
        LinkOutcome::Linked(DuplicateLink(self.to.clone()))
    }
}

//! Sets the type of a ticket.

use async_trait::async_trait;
use domain::TicketKey;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    effect_error::EffectError,
    receipt::{TriageWish, UnsetChoice, UnsetReason},
};

/// Sets the type of a GitHub issue without one. A Jira issue always has a type, so it changes only where the rules
/// allow it; elsewhere the comment suggests the type.
#[derive(Debug)]
pub(crate) struct SetIssueType {
    pub(crate) ticket: TicketKey,
    pub(crate) name: String,
}

#[async_trait]
impl OutboundEffect for SetIssueType {
    type Output = Vec<UnsetChoice>;

    fn name(&self) -> &'static str {
        "set_issue_type"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.ticket)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn look(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let current = self.current(outside).await?;
        let is_it = current.is_some_and(|name| name.eq_ignore_ascii_case(&self.name));
        Ok(is_it.then(Vec::new))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let wish = TriageWish::Type {
            name: self.name.clone(),
        };
        let changes = asked.rules.is_some_and(|rules| rules.triage.change_jira_type);
        let set = match &self.ticket {
            TicketKey::Jira { .. } if !changes => {
                let why = UnsetReason::Suggested;
                return Ok(vec![UnsetChoice { wish, why }]);
            }
            TicketKey::Jira { .. } => {
                let set = outside.jira.set_issue_type(&self.ticket, &self.name).await;
                set.map_err(EffectError::from)
            }
            TicketKey::GitHub { repository, number } => {
                if let Some(current) = self.current(outside).await? {
                    let why = UnsetReason::Has { current };
                    return Ok(vec![UnsetChoice { wish, why }]);
                }
                let github = &outside.github;
                let set = github.set_issue_type(repository, *number, &self.name).await;
                set.map_err(EffectError::from)
            }
            TicketKey::Folder { .. } | TicketKey::Discussion { .. } => return Ok(Vec::new()),
        };
        Ok(UnsetChoice::when_refused(set, wish)?.into_iter().collect())
    }
}

impl SetIssueType {
    async fn current(&self, outside: &OutboundClients) -> Result<Option<String>, EffectError> {
        Ok(match &self.ticket {
            TicketKey::Jira { .. } => Some(outside.jira.sorted(&self.ticket).await?.issue_type),
            TicketKey::GitHub { repository, number } => {
                outside.github.issue_type(repository, *number).await?
            }
            TicketKey::Folder { .. } | TicketKey::Discussion { .. } => None,
        })
    }
}

//! Assigns a ticket to the account that the rules name.

use async_trait::async_trait;
use domain::{AssigneeRule, RepositoryName, RepositoryRules, TicketKey};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::effect_error::EffectError;

/// Assigns a ticket, so that its watchers see who works on it. An existing assignee stays.
#[derive(Debug)]
pub(crate) struct AssignTicket {
    pub(crate) ticket: TicketKey,
}

#[async_trait]
impl OutboundEffect for AssignTicket {
    type Output = ();

    fn name(&self) -> &'static str {
        "assign"
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
        let is_taken = match &self.ticket {
            TicketKey::Jira { .. } => outside.jira.assignee(&self.ticket).await?.is_some(),
            TicketKey::GitHub { repository, number } => {
                !outside.github.assignees(repository, *number).await?.is_empty()
            }
            TicketKey::Folder { .. } | TicketKey::Discussion { .. } => true,
        };
        Ok(is_taken.then_some(()))
    }

    /// A failed assignment is not an error: the work does not depend on it.
    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let rules = asked
            .rules
            .map_or_else(RepositoryRules::default, RepositoryRules::clone);
        let is_assigned = match &self.ticket {
            TicketKey::Jira { .. } => match on_jira(outside, &self.ticket, &rules).await? {
                Some(account) => match outside.jira.assign(&self.ticket, &account).await {
                    Err(jira::Error::Rejected { .. }) => false,
                    done => done.map(|()| true)?,
                },
                None => false,
            },
            TicketKey::GitHub { repository, number } => match on_github(outside, repository, &rules).await? {
                Some(login) => outside.github.assign(repository, *number, &login).await?,
                None => false,
            },
            TicketKey::Folder { .. } | TicketKey::Discussion { .. } => return Ok(()),
        };
        match is_assigned {
            true => tracing::info!(ticket = %self.ticket, "ticket assigned"),
            false => tracing::warn!(
                ticket = %self.ticket,
                "ticket not assigned: the account of the rule agent.assign cannot have it"
            ),
        }
        Ok(())
    }
}

/// Returns the id of the Jira account for tickets.
pub(super) async fn on_jira(
    outside: &OutboundClients,
    ticket: &TicketKey,
    rules: &RepositoryRules,
) -> Result<Option<String>, EffectError> {
    Ok(match &rules.agent.assign {
        AssigneeRule::Nobody => None,
        AssigneeRule::Us => Some(outside.jira.account_at(ticket).await?.id),
        AssigneeRule::To(account) => Some(account.clone()),
    })
}

/// Returns the GitHub login for issues; `None` for an App, because GitHub does not assign issues to it.
pub(super) async fn on_github(
    outside: &OutboundClients,
    repository: &RepositoryName,
    rules: &RepositoryRules,
) -> Result<Option<String>, EffectError> {
    let known = match &rules.agent.assign {
        AssigneeRule::Nobody => return Ok(None),
        AssigneeRule::To(login) => login.clone(),
        AssigneeRule::Us if !rules.issues.assignee.is_empty() => rules.issues.assignee.clone(),
        AssigneeRule::Us => outside.github.login(repository.instance()).await?,
    };
    // Logins of Apps end in `[bot]`.
    Ok(Some(known).filter(|login| !login.ends_with("[bot]")))
}

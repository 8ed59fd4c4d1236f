//! Assigns a ticket to the account that the rules name.

use async_trait::async_trait;
use domain::{Assign, RepositoryName, Rules, TicketKey};

use super::{Asked, Effect, EffectTarget, Outside};
use crate::{made::Made, trouble::Trouble};

/// Assigns a ticket, so that its watchers see who works on it. An existing assignee stays.
#[derive(Debug)]
pub(crate) struct AssignTicket {
    pub(crate) ticket: TicketKey,
}

#[async_trait]
impl Effect for AssignTicket {
    fn name(&self) -> &'static str {
        "assign"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.ticket)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn look(&self, outside: &Outside, _: &Asked<'_>) -> Result<Option<Made>, Trouble> {
        let is_taken = match &self.ticket {
            TicketKey::Jira { .. } => outside.jira.assignee(&self.ticket).await?.is_some(),
            TicketKey::GitHub { repository, number } => {
                !outside.github.assignees(repository, *number).await?.is_empty()
            }
            TicketKey::Folder { .. } | TicketKey::Discussion { .. } => true,
        };
        Ok(is_taken.then(Made::default))
    }

    /// A failed assignment is not an error: the work does not depend on it.
    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        let rules = asked.rules.map_or_else(Rules::default, Rules::clone);
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
            TicketKey::Folder { .. } | TicketKey::Discussion { .. } => return Ok(Made::default()),
        };
        match is_assigned {
            true => tracing::info!(ticket = %self.ticket, "ticket assigned"),
            false => tracing::warn!(
                ticket = %self.ticket,
                "ticket not assigned: the account of the rule agent.assign cannot have it"
            ),
        }
        Ok(Made::default())
    }
}

/// Returns the id of the Jira account for tickets.
pub(super) async fn on_jira(
    outside: &Outside,
    ticket: &TicketKey,
    rules: &Rules,
) -> Result<Option<String>, Trouble> {
    Ok(match &rules.agent.assign {
        Assign::Nobody => None,
        Assign::Us => Some(outside.jira.account_at(ticket).await?.id),
        Assign::To(account) => Some(account.clone()),
    })
}

/// Returns the GitHub login for issues; `None` for an App, because GitHub does not assign issues to it.
pub(super) async fn on_github(
    outside: &Outside,
    repository: &RepositoryName,
    rules: &Rules,
) -> Result<Option<String>, Trouble> {
    let known = match &rules.agent.assign {
        Assign::Nobody => return Ok(None),
        Assign::To(login) => login.clone(),
        Assign::Us if !rules.issues.assignee.is_empty() => rules.issues.assignee.clone(),
        Assign::Us => outside.github.login(repository.instance()).await?,
    };
    // Logins of Apps end in `[bot]`.
    Ok(Some(known).filter(|login| !login.ends_with("[bot]")))
}

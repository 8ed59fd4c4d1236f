//! Assigns a ticket to the account that the rules name, and unassigns it.

use async_trait::async_trait;
use domain::{AssigneeRule, RepositoryName, RepositoryRules, TicketKey, TrackerAccount};

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

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "assign"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.ticket)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let is_taken = match &self.ticket {
            TicketKey::Jira { .. } => outside.jira.assignee(&self.ticket).await?.is_some(),
            TicketKey::GitHub { repository, number } => !outside
                .github
                .issues()
                .assignees(repository, *number)
                .await?
                .is_empty(),
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
                Some(login) => {
                    outside
                        .github
                        .issues()
                        .assign(repository, *number, &login)
                        .await?
                }
                None => false,
            },
            TicketKey::Folder { .. } | TicketKey::Discussion { .. } => return Ok(()),
        };
        if is_assigned {
            tracing::info!(ticket = %self.ticket, "ticket assigned");
        } else {
            tracing::warn!(
                ticket = %self.ticket,
                "ticket not assigned: the account of the rule agent.assign cannot have it"
            );
        }
        Ok(())
    }
}

/// Returns the id of the Jira account for tickets.
async fn on_jira(
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
async fn on_github(
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

/// Removes the assignee of a Jira issue, or the assignee and labels that request work on a GitHub issue, so that
/// setting them again requests work again.
#[derive(Debug)]
pub(crate) struct UnassignTicket {
    pub(crate) ticket: TicketKey,
    /// If true, a Jira issue is also taken from a person.
    pub(crate) from_anybody: bool,
}

#[async_trait]
impl OutboundEffect for UnassignTicket {
    type Output = ();

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "unassign"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.ticket)
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        match (&self.ticket, asked.rules) {
            (TicketKey::Jira { .. }, rules) => {
                if !self.from_anybody && !self.is_ours(outside, rules).await? {
                    return Ok(());
                }
                outside.jira.unassign(&self.ticket).await?;
            }
            (TicketKey::GitHub { repository, number }, Some(rules)) => {
                give_back(outside, repository, *number, rules).await?;
            }
            (TicketKey::GitHub { .. }, None)
            | (TicketKey::Folder { .. } | TicketKey::Discussion { .. }, _) => {
                return Ok(());
            }
        }
        tracing::info!(ticket = %self.ticket, "ticket unassigned");
        Ok(())
    }
}

impl UnassignTicket {
    /// Returns true if the assignee of the Jira issue is an account of ours, or one whose assignment requests work.
    async fn is_ours(
        &self,
        outside: &OutboundClients,
        rules: Option<&RepositoryRules>,
    ) -> Result<bool, EffectError> {
        let (Some(rules), Some(has_it)) = (rules, outside.jira.assignee(&self.ticket).await?) else {
            return Ok(false);
        };
        let given = on_jira(outside, &self.ticket, rules).await?;
        let is_it = |account: &TrackerAccount| given.as_ref() == Some(&account.id);
        Ok(rules.jira.is_assignee(&has_it) || is_it(&has_it))
    }
}

async fn give_back(
    outside: &OutboundClients,
    repository: &RepositoryName,
    number: u64,
    rules: &RepositoryRules,
) -> Result<(), EffectError> {
    let (github, issues) = (&outside.github, &rules.issues);
    let given = on_github(outside, repository, rules).await?;
    let asking = Some(&issues.assignee).filter(|login| !login.is_empty());
    let also = given.as_ref().filter(|login| !issues.is_assignee(login));
    for login in asking.into_iter().chain(also) {
        github.issues().unassign(repository, number, login).await?;
    }
    for label in &issues.labels {
        github.issues().remove_label(repository, number, label).await?;
    }
    Ok(())
}

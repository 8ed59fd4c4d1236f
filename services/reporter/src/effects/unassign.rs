//! Unassigns a ticket.

use async_trait::async_trait;
use domain::{RepositoryName, RepositoryRules, TicketKey, TrackerAccount};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect, assign};
use crate::effect_error::EffectError;

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

    fn name(&self) -> &'static str {
        "unassign"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.ticket)
    }

    fn only_tells(&self) -> bool {
        true
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
        let given = assign::on_jira(outside, &self.ticket, rules).await?;
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
    let given = assign::on_github(outside, repository, rules).await?;
    let asking = Some(&issues.assignee).filter(|login| !login.is_empty());
    let also = given.as_ref().filter(|login| !issues.is_assignee(login));
    for login in asking.into_iter().chain(also) {
        github.unassign(repository, number, login).await?;
    }
    for label in &issues.labels {
        github.remove_label(repository, number, label).await?;
    }
    Ok(())
}

//! Give a ticket back.

use async_trait::async_trait;
use domain::{Account, RepositoryName, Rules, TicketKey};

use super::{Asked, Effect, EffectTarget, Outside, assign};
use crate::{made::Made, trouble::Trouble};

/// Leave a Jira issue to nobody, and take from an issue of GitHub what asks for work on it, so that giving it to us again
/// asks for work again.
#[derive(Debug)]
pub(crate) struct Unassign {
    pub(crate) ticket: TicketKey,
    /// Whether a Jira issue is taken from a person too, and not from us alone.
    pub(crate) from_anybody: bool,
}

#[async_trait]
impl Effect for Unassign {
    fn name(&self) -> &'static str {
        "unassign"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.ticket)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        match (&self.ticket, asked.rules) {
            (TicketKey::Jira { .. }, rules) => {
                if !self.from_anybody && !self.is_ours(outside, rules).await? {
                    return Ok(Made::default());
                }
                outside.jira.unassign(&self.ticket).await?;
            }
            (TicketKey::GitHub { repository, number }, Some(rules)) => {
                give_back(outside, repository, *number, rules).await?;
            }
            (TicketKey::GitHub { .. }, None)
            | (TicketKey::Folder { .. } | TicketKey::Discussion { .. }, _) => return Ok(Made::default()),
        }
        tracing::info!(ticket = %self.ticket, "ticket unassigned");
        Ok(Made::default())
    }
}

impl Unassign {
    /// Whether the account that has the Jira issue is one that issues are given to so that we work on them.
    async fn is_ours(&self, outside: &Outside, rules: Option<&Rules>) -> Result<bool, Trouble> {
        let (Some(rules), Some(has_it)) = (rules, outside.jira.assignee(&self.ticket).await?) else {
            return Ok(false);
        };
        let given = assign::on_jira(outside, &self.ticket, rules).await?;
        let is_it = |account: &Account| given.as_ref() == Some(&account.id);
        Ok(rules.jira.is_assignee(&has_it) || is_it(&has_it))
    }
}

async fn give_back(
    outside: &Outside,
    repository: &RepositoryName,
    number: u64,
    rules: &Rules,
) -> Result<(), Trouble> {
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

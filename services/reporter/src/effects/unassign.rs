//! Give a ticket back.

use async_trait::async_trait;
use domain::TicketKey;

use super::{Asked, Effect, Outside};
use crate::{made::Made, trouble::Trouble};

/// Leave a Jira issue to nobody, and take from an issue of GitHub what asks for work on it, so that giving it to us again
/// asks for work again.
#[derive(Debug)]
pub(crate) struct Unassign {
    pub(crate) ticket: TicketKey,
}

#[async_trait]
impl Effect for Unassign {
    fn name(&self) -> &'static str {
        "unassign"
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        match (&self.ticket, asked.rules) {
            (TicketKey::Jira { .. }, _) => outside.jira.unassign(&self.ticket).await?,
            (TicketKey::GitHub { repository, number }, Some(rules)) => {
                let github = &outside.github;
                let issues = &rules.issues;
                if !issues.assignee.is_empty() {
                    github.unassign(repository, *number, &issues.assignee).await?;
                }
                for label in &issues.labels {
                    github.remove_label(repository, *number, label).await?;
                }
            }
            (TicketKey::GitHub { .. }, None)
            | (TicketKey::Folder { .. } | TicketKey::Discussion { .. }, _) => return Ok(Made::default()),
        }
        tracing::info!(ticket = %self.ticket, "ticket unassigned");
        Ok(Made::default())
    }
}

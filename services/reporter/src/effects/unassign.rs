//! Take a Jira issue from whoever has it.

use async_trait::async_trait;
use domain::TicketKey;

use super::{Asked, Effect, Outside};
use crate::{made::Made, trouble::Trouble};

/// Leave a Jira issue to nobody, so that giving it back asks for work again.
#[derive(Debug)]
pub(crate) struct Unassign {
    /// The Jira issue.
    pub(crate) issue: TicketKey,
}

#[async_trait]
impl Effect for Unassign {
    fn name(&self) -> &'static str {
        "unassign"
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(&self, outside: &Outside, _: &Asked<'_>) -> Result<Made, Trouble> {
        outside.jira.unassign(&self.issue).await?;
        tracing::info!(ticket = %self.issue, "ticket unassigned");
        Ok(Made::default())
    }
}

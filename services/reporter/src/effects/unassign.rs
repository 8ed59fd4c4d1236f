//! Take a Jira issue from whoever has it.

use domain::TicketKey;

use super::Outside;
use crate::{made::Made, trouble::Trouble};

/// Leaves the issue to nobody.
pub(super) async fn create(outside: &Outside, issue: &TicketKey) -> Result<Made, Trouble> {
    outside.jira.unassign(issue).await?;
    tracing::info!(ticket = %issue, "ticket unassigned");
    Ok(Made::default())
}

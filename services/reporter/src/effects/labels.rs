//! Put labels on the ticket.

use domain::TicketKey;

use super::Outside;
use crate::{plan::Made, trouble::Trouble};

/// Adds them; those that are there stay.
pub(super) async fn create(
    outside: &Outside,
    ticket: &TicketKey,
    labels: &[String],
) -> Result<Made, Trouble> {
    match ticket {
        TicketKey::Jira { .. } => outside.jira.add_labels(ticket, labels).await?,
        TicketKey::GitHub { repository, number } => {
            outside.github.add_labels(repository, *number, labels).await?;
        }
    }
    tracing::info!(%ticket, labels = labels.len(), "ticket labeled");
    Ok(Made::default())
}

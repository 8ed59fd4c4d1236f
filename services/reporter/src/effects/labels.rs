//! Put labels on the ticket.

use domain::TicketKey;

use super::Outside;
use crate::{made::Made, outgoing::Outgoing, policy::Place, trouble::Trouble};

/// Adds them; those that are there stay.
pub(super) async fn create(
    outside: &Outside,
    ticket: &TicketKey,
    labels: &[String],
) -> Result<Made, Trouble> {
    let checked = labels
        .iter()
        .map(|label| Outgoing::by_the_model(label.clone(), Place::Label))
        .collect::<Result<Vec<_>, _>>()?;
    outside.label(ticket, &checked).await?;
    tracing::info!(%ticket, labels = labels.len(), "ticket labeled");
    Ok(Made::default())
}

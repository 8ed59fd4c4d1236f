//! Adds labels to the ticket.

use async_trait::async_trait;
use domain::{SecretPlace, TicketKey};

use super::{Asked, Effect, EffectTarget, Outside};
use crate::{made::Made, outgoing::Outgoing, trouble::Trouble};

/// Adds labels to the ticket. Existing labels stay.
#[derive(Debug)]
pub(crate) struct AddLabels {
    pub(crate) ticket: TicketKey,
    pub(crate) labels: Vec<String>,
}

#[async_trait]
impl Effect for AddLabels {
    fn name(&self) -> &'static str {
        "add_labels"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.ticket)
    }

    async fn create(&self, outside: &Outside, _: &Asked<'_>) -> Result<Made, Trouble> {
        let checked = self
            .labels
            .iter()
            .map(|label| Outgoing::by_the_model(label.clone(), SecretPlace::Label))
            .collect::<Result<Vec<_>, _>>()?;
        outside.label(&self.ticket, &checked).await?;
        tracing::info!(ticket = %self.ticket, labels = self.labels.len(), "ticket labeled");
        Ok(Made::default())
    }
}

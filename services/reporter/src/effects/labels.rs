//! Adds labels to the ticket.

use async_trait::async_trait;
use domain::{SecretPlace, TicketKey};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{cleared_text::ClearedText, effect_error::EffectError};

/// Adds labels to the ticket. Existing labels stay.
#[derive(Debug)]
pub(crate) struct AddLabels {
    pub(crate) ticket: TicketKey,
    pub(crate) labels: Vec<String>,
}

#[async_trait]
impl OutboundEffect for AddLabels {
    type Output = ();

    fn name(&self) -> &'static str {
        "add_labels"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.ticket)
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let checked = self
            .labels
            .iter()
            .map(|label| ClearedText::by_the_model(label.clone(), SecretPlace::Label))
            .collect::<Result<Vec<_>, _>>()?;
        outside.label(&self.ticket, &checked).await?;
        tracing::info!(ticket = %self.ticket, labels = self.labels.len(), "ticket labeled");
        Ok(())
    }
}

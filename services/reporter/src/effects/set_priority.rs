//! Sets the priority of a ticket.

use async_trait::async_trait;
use domain::{SecretPlace, TicketKey, TriageRules};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    cleared_text::ClearedText,
    effect_error::EffectError,
    receipt::{TriageWish, UnsetChoice},
};

/// Sets the priority of a Jira issue, or the priority label of a GitHub issue in place of other priority labels.
#[derive(Debug)]
pub(crate) struct SetPriority {
    pub(crate) ticket: TicketKey,
    pub(crate) name: String,
}

#[async_trait]
impl OutboundEffect for SetPriority {
    type Output = Vec<UnsetChoice>;

    fn name(&self) -> &'static str {
        "set_priority"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.ticket)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn look(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let TicketKey::Jira { .. } = &self.ticket else {
            return Ok(None);
        };
        let current = outside.jira.sorted(&self.ticket).await?.priority;
        Ok(current.eq_ignore_ascii_case(&self.name).then(Vec::new))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let set = match (&self.ticket, asked.rules) {
            (TicketKey::Jira { .. }, _) => {
                let set = outside.jira.set_priority(&self.ticket, &self.name).await;
                set.map_err(EffectError::from)
            }
            (TicketKey::GitHub { .. }, Some(rules)) => self.label(outside, &rules.triage).await,
            (TicketKey::GitHub { .. }, None)
            | (TicketKey::Folder { .. } | TicketKey::Discussion { .. }, _) => {
                return Ok(Vec::new());
            }
        };
        let wish = TriageWish::Priority {
            name: self.name.clone(),
        };
        Ok(UnsetChoice::when_refused(set, wish)?.into_iter().collect())
    }
}

impl SetPriority {
    async fn label(&self, outside: &OutboundClients, rules: &TriageRules) -> Result<(), EffectError> {
        let (TicketKey::GitHub { repository, number }, Some(label)) =
            (&self.ticket, rules.label_of(&self.name))
        else {
            return Ok(());
        };
        let others = rules.priorities.iter().filter(|other| **other != self.name);
        for other in others.filter_map(|other| rules.label_of(other)) {
            outside.github.remove_label(repository, *number, &other).await?;
        }
        let label = ClearedText::by_the_model(label.clone(), SecretPlace::Label)?;
        outside.label(&self.ticket, &[label]).await
    }
}

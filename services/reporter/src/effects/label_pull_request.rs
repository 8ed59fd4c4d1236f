//! Adds the labels of the rules to a pull request of ours.

use async_trait::async_trait;
use domain::{PullRequestRef, SecretPlace, TicketKey};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{cleared_text::ClearedText, effect_error::EffectError, message};

/// Adds labels to the pull request of the report. Existing labels stay.
#[derive(Debug)]
pub(crate) struct LabelPullRequest {
    /// Labels as the operator wrote them.
    pub(crate) labels: Vec<String>,
}

#[async_trait]
impl OutboundEffect for LabelPullRequest {
    type Output = ();

    fn name(&self) -> &'static str {
        "label_pull_request"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::OpenedPullRequest
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let Some(pull_request) = asked.receipts.last::<PullRequestRef>() else {
            return Err(EffectError::Failed(message::nothing_to_link()));
        };
        let labels = self.labels.iter();
        let labels = labels
            .map(|label| ClearedText::by_the_model(label.clone(), SecretPlace::Label))
            .collect::<Result<Vec<_>, _>>()?;
        // GitHub's API for labels treats a pull request as the issue of the same number.
        let issue = TicketKey::GitHub {
            repository: pull_request.repository.clone(),
            number: pull_request.number,
        };
        outside.label(&issue, &labels).await?;
        Ok(())
    }
}

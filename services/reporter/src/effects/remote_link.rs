//! Links the pull request on the Jira issue.

use async_trait::async_trait;
use domain::{PullRequestRef, TicketKey};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect, text_writes::link_pull_request};
use crate::{cleared_text::ClearedText, effect_error::EffectError, message, receipt::RefusedLink};

/// Links the pull request of the report on the Jira issue. A repetition replaces the link. If Jira refuses for good,
/// the status comment contains the link.
#[derive(Debug)]
pub(crate) struct LinkPullRequest {
    /// Key of the Jira issue.
    pub(crate) issue: TicketKey,
}

#[async_trait]
impl OutboundEffect for LinkPullRequest {
    type Output = Option<RefusedLink>;

    fn name(&self) -> &'static str {
        "link_pull_request"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.issue)
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
        let title = ClearedText::without_credentials(&message::remote_link_title(pull_request));
        let linked = link_pull_request(&outside.jira, &self.issue, pull_request, &title).await;
        let detail = match linked.map_err(EffectError::from) {
            Ok(()) => return Ok(None),
            Err(EffectError::Refused(refusal)) => refusal.words(),
            Err(EffectError::Denied { detail, .. }) => {
                tracing::error!(%detail, "permission missing: the pull request is not linked on the issue");
                detail
            }
            Err(trouble) => return Err(trouble),
        };
        Ok(Some(RefusedLink(detail)))
    }
}

//! Links the pull request on the Jira issue.

use async_trait::async_trait;
use domain::TicketKey;

use super::{Asked, Effect, EffectTarget, Outside, letters::link_pull_request};
use crate::{made::Made, message, outgoing::Outgoing, trouble::Trouble};

/// Links the pull request of the report on the Jira issue. A repetition replaces the link. If Jira refuses for good,
/// the status comment contains the link.
#[derive(Debug)]
pub(crate) struct LinkPullRequest {
    /// Key of the Jira issue.
    pub(crate) issue: TicketKey,
}

#[async_trait]
impl Effect for LinkPullRequest {
    fn name(&self) -> &'static str {
        "link_pull_request"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.issue)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        let Some(pull_request) = &asked.made.pull_request else {
            return Err(Trouble::Failed(message::nothing_to_link()));
        };
        let title = Outgoing::without_credentials(&message::remote_link_title(pull_request));
        let linked = link_pull_request(&outside.jira, &self.issue, pull_request, &title).await;
        let detail = match linked.map_err(Trouble::from) {
            Ok(()) => return Ok(Made::default()),
            Err(Trouble::Refused(refusal)) => refusal.words(),
            Err(Trouble::Denied { detail, .. }) => {
                tracing::error!(%detail, "permission missing: the pull request is not linked on the issue");
                detail
            }
            Err(trouble) => return Err(trouble),
        };
        Ok(Made {
            unlinked: Some(detail),
            ..Made::default()
        })
    }
}

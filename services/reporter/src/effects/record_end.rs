//! Records in the index of our pull requests that one is closed.

use async_trait::async_trait;
use domain::{PullRequestRecord, PullRequestRef, PullRequestStatus};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::effect_error::EffectError;

/// Records the end of a pull request, so that polls stop reading it. A failure to record it keeps the report
/// unsettled.
#[derive(Debug)]
pub(crate) struct RecordEnd {
    pub(crate) pull_request: PullRequestRef,
    /// End of the pull request: merged or closed.
    pub(crate) status: PullRequestStatus,
}

#[async_trait]
impl OutboundEffect for RecordEnd {
    type Output = ();

    fn name(&self) -> &'static str {
        "record_end"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::PullRequest(&self.pull_request)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let over = PullRequestRecord {
            pull_request: self.pull_request.clone(),
            ticket: asked.report.ticket.clone(),
            head: None,
            status: self.status,
        };
        outside.pull_requests.keep(&over).await?;
        Ok(())
    }
}

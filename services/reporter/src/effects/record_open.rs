//! Records in the index of our pull requests that one is open again.

use async_trait::async_trait;
use domain::{CommitId, PullRequestRecord, PullRequestRef, PullRequestStatus};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::effect_error::EffectError;

/// Records that a pull request is open again, so that ingest follows its checks and reviews.
#[derive(Debug)]
pub(crate) struct RecordOpen {
    pub(crate) pull_request: PullRequestRef,
    pub(crate) head: CommitId,
}

#[async_trait]
impl OutboundEffect for RecordOpen {
    type Output = ();

    fn name(&self) -> &'static str {
        "record_open"
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
        let open = PullRequestRecord {
            pull_request: self.pull_request.clone(),
            ticket: asked.report.ticket.clone(),
            head: Some(self.head.clone()),
            status: PullRequestStatus::Open,
        };
        outside.pull_requests.keep(&open).await?;
        Ok(())
    }
}

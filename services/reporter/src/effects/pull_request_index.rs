//! Records in the index of our pull requests that one is closed or open again.

use async_trait::async_trait;
use domain::{CommitId, PullRequestRecord, PullRequestRef, PullRequestStatus};

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

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "record_end"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::PullRequest(&self.pull_request)
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

/// Records that a pull request is open again, so that ingest follows its checks and reviews.
#[derive(Debug)]
pub(crate) struct RecordOpen {
    pub(crate) pull_request: PullRequestRef,
    pub(crate) head: CommitId,
}

#[async_trait]
impl OutboundEffect for RecordOpen {
    type Output = ();

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "record_open"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::PullRequest(&self.pull_request)
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

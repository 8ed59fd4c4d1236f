//! Write into the index of our pull requests that one is over.

use async_trait::async_trait;
use domain::{PullRequestRecord, PullRequestRef, PullRequestStatus};

use super::{Asked, Effect, EffectTarget, Outside};
use crate::{made::Made, trouble::Trouble};

/// Write into our index that a pull request is over, so that nobody asks about it again. What keeps it from being written
/// leaves the report unsettled anyway.
#[derive(Debug)]
pub(crate) struct RecordEnd {
    pub(crate) pull_request: PullRequestRef,
    /// How it ended.
    pub(crate) status: PullRequestStatus,
}

#[async_trait]
impl Effect for RecordEnd {
    fn name(&self) -> &'static str {
        "record_end"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::PullRequest(&self.pull_request)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        let over = PullRequestRecord {
            pull_request: self.pull_request.clone(),
            ticket: asked.report.ticket.clone(),
            head: None,
            status: self.status,
        };
        outside.pull_requests.keep(&over).await?;
        Ok(Made::default())
    }
}

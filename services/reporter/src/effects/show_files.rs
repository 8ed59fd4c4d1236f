//! Reads the changed files of a pull request for its ticket's comment.

use async_trait::async_trait;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{effect_error::EffectError, message, receipt::ChangedFiles};

/// Reads the current files of the report's pull request.
#[derive(Debug)]
pub(crate) struct ShowFiles {
    /// Pull request to read; absent: the one that the report has just opened.
    pub(crate) pull_request: Option<domain::PullRequestRef>,
}

#[async_trait]
impl OutboundEffect for ShowFiles {
    type Output = ChangedFiles;

    fn name(&self) -> &'static str {
        "show_files"
    }

    fn target(&self) -> EffectTarget<'_> {
        match &self.pull_request {
            Some(named) => EffectTarget::PullRequest(named),
            None => EffectTarget::OpenedPullRequest,
        }
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let pull_request = self.pull_request.as_ref().or(asked.receipts.last());
        let Some(pull_request) = pull_request else {
            return Err(EffectError::Failed(message::nothing_to_link()));
        };
        let files = outside
            .github
            .changed_files(&pull_request.repository, pull_request.number)
            .await?;
        Ok(ChangedFiles {
            total: files.len(),
            files: message::what_fits(files),
        })
    }
}

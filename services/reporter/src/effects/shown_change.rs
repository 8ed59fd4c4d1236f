//! Reads the change of a push or of a pull request for the comments that show it.

use async_trait::async_trait;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect, push_branch::inspect_change};
use crate::{
    effect_error::EffectError,
    inspect::DiffDisplay,
    message,
    push_rules::PushRules,
    receipt::{ChangedFiles, ShownChange},
};

/// Inspects a change as a push of it would, so that no person decides about a change that cannot be pushed. A repetition
/// produces the same text, which is stored under the hash of its content.
#[derive(Debug)]
pub(crate) struct ShowChange(pub(crate) domain::BranchPush);

#[async_trait]
impl OutboundEffect for ShowChange {
    type Output = ShownChange;

    fn name(&self) -> &'static str {
        "show_change"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Repository(&self.0.repository)
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let push = &self.0;
        let patterns = match asked.rules {
            Some(rules) => {
                let target = rules.target_branch();
                let read = PushRules::read(&outside.github, &push.repository, target, &push.branch);
                read.await?.patterns()
            }
            // The inspection refuses a repository without rules.
            None => Vec::new(),
        };
        let (rendered, _) = inspect_change(outside, asked, push, DiffDisplay::ForDecision, patterns).await?;
        let rendered = rendered.ok_or_else(|| EffectError::Failed(message::no_difference()))?;
        let excerpt = message::excerpt_diff(&rendered.text);
        let shown = ShownChange {
            head: push.head.clone(),
            files: rendered.files,
            diff: outside.objects.put(rendered.text.into()).await?,
            excerpt: excerpt.text,
            hidden_lines: excerpt.hidden_lines,
            hidden_files: excerpt.hidden_files.into_iter().take(200).collect(),
        };
        tracing::info!(repository = %push.repository, head = %push.head, files = shown.files, "change shown for a decision");
        Ok(shown)
    }
}

/// Reads the current files of the report's pull request.
#[derive(Debug)]
pub(crate) struct ShowFiles {
    /// Pull request to read; absent: the one that the report has just opened.
    pub(crate) pull_request: Option<domain::PullRequestRef>,
}

#[async_trait]
impl OutboundEffect for ShowFiles {
    type Output = ChangedFiles;

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "show_files"
    }

    fn target(&self) -> EffectTarget<'_> {
        match &self.pull_request {
            Some(named) => EffectTarget::PullRequest(named),
            None => EffectTarget::OpenedPullRequest,
        }
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
            .reviews()
            .changed_files(&pull_request.repository, pull_request.number)
            .await?;
        Ok(ChangedFiles {
            total: files.len(),
            files: message::select_named_files(files),
        })
    }
}

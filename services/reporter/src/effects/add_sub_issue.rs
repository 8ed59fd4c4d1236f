//! Adds an issue as a sub-issue of another one.

use async_trait::async_trait;
use domain::RepositoryName;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    effect_error::EffectError,
    receipt::{EffectReceipts, MadeIssue},
};

/// Adds an issue that the report opened as a sub-issue.
#[derive(Debug)]
pub(crate) struct AddSubIssue {
    pub(crate) repository: RepositoryName,
    /// Number of the parent issue; absent: the first issue that the report opened.
    pub(crate) parent: Option<u64>,
    /// Index of the sub-issue among the issues that the report opened.
    pub(crate) part: usize,
}

impl AddSubIssue {
    fn ends<'a>(&self, receipts: &'a EffectReceipts) -> Option<(u64, &'a MadeIssue)> {
        let mut issues = receipts.all::<MadeIssue>();
        let part = issues.clone().nth(self.part)?;
        let parent = self.parent.or(issues.next().map(|first| first.number))?;
        Some((parent, part))
    }
}

#[async_trait]
impl OutboundEffect for AddSubIssue {
    type Output = ();

    fn name(&self) -> &'static str {
        "add_sub_issue"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::IssuePart(&self.repository, self.parent)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn look(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let Some((parent, part)) = self.ends(asked.receipts) else {
            return Ok(None);
        };
        let parts = outside.github.sub_issues(&self.repository, parent).await?;
        Ok(parts.contains(&part.number).then_some(()))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        if let Some((parent, part)) = self.ends(asked.receipts) {
            let github = &outside.github;
            github.add_sub_issue(&self.repository, parent, part.id).await?;
            tracing::info!(repository = %self.repository, parent, number = part.number, "issue is a part of another");
        }
        Ok(())
    }
}

//! Adds an issue as a sub-issue of another one.

use async_trait::async_trait;
use domain::RepositoryName;

use super::{Asked, Effect, EffectTarget, Outside};
use crate::{
    made::{Made, MadeIssue},
    trouble::Trouble,
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
    fn ends<'a>(&self, made: &'a Made) -> Option<(u64, &'a MadeIssue)> {
        let parent = self.parent.or(made.issues.first().map(|first| first.number))?;
        Some((parent, made.issues.get(self.part)?))
    }
}

#[async_trait]
impl Effect for AddSubIssue {
    fn name(&self) -> &'static str {
        "add_sub_issue"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::IssuePart(&self.repository, self.parent)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn look(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Option<Made>, Trouble> {
        let Some((parent, part)) = self.ends(asked.made) else {
            return Ok(None);
        };
        let parts = outside.github.sub_issues(&self.repository, parent).await?;
        Ok(parts.contains(&part.number).then(Made::default))
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        if let Some((parent, part)) = self.ends(asked.made) {
            let github = &outside.github;
            github.add_sub_issue(&self.repository, parent, part.id).await?;
            tracing::info!(repository = %self.repository, parent, number = part.number, "issue is a part of another");
        }
        Ok(Made::default())
    }
}

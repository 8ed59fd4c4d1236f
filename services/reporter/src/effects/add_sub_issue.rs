//! Make an issue a part of another one.

use async_trait::async_trait;
use domain::RepositoryName;

use super::{Asked, Effect, EffectTarget, Outside};
use crate::{
    made::{Made, MadeIssue},
    trouble::Trouble,
};

/// Make one of the issues that the report opened a part of another one. Without it they stand beside each other.
#[derive(Debug)]
pub(crate) struct AddSubIssue {
    pub(crate) repository: RepositoryName,
    /// The issue that it is a part of; absent: the first that the report opened.
    pub(crate) parent: Option<u64>,
    /// Which of those that the report opened, from 0.
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

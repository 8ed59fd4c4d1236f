//! Closes a GitHub issue.

use async_trait::async_trait;
use domain::RepositoryName;

use super::{Asked, Effect, EffectTarget, Outside};
use crate::{
    made::{Made, Moved},
    trouble::Trouble,
};

/// Closes a GitHub issue as completed. GitHub does so itself only when a pull request that names the issue is merged
/// into the default branch.
#[derive(Debug)]
pub(crate) struct CloseIssue {
    pub(crate) repository: RepositoryName,
    pub(crate) number: u64,
}

#[async_trait]
impl Effect for CloseIssue {
    fn name(&self) -> &'static str {
        "close_issue"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Issue(&self.repository, self.number)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn look(&self, outside: &Outside, _: &Asked<'_>) -> Result<Option<Made>, Trouble> {
        let is_open = outside
            .github
            .is_issue_open(&self.repository, self.number)
            .await?;
        Ok((!is_open).then(closed))
    }

    async fn create(&self, outside: &Outside, _: &Asked<'_>) -> Result<Made, Trouble> {
        outside.github.close_issue(&self.repository, self.number).await?;
        tracing::info!(repository = %self.repository, number = self.number, "issue closed");
        Ok(closed())
    }
}

fn closed() -> Made {
    Made {
        moved: Some(Moved::To("Closed".to_owned())),
        ..Made::default()
    }
}
